package awsmodel_test

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// difference is one way in which an engine differs from AWS.
type difference struct {
	engine string // one name or more
	what   string // the difference, and which side is wrong
	aws    string // AWS's sentence in quotes, or ours with AWS's page
	// diverges means that the two store different things from then on.
	diverges bool
	// explains reports whether this is why the responses differ.
	explains func(what string, engine, model object) bool
}

// differences are all that the model and the engines may disagree on.
var differences = []difference{
	{
		engine: "extenddb dynoxide",
		what:   "A page counts the item after it too: ExtendDB in its capacity, Dynoxide in ScannedCount. Both are wrong.",
		aws:    "A Query consumes the sum of the sizes of the items that it processes (Developer Guide, read consumption).",
		explains: func(what string, engine, model object) bool {
			more := engine["LastEvaluatedKey"] != nil && engine["Count"] == model["Count"]
			counted, _ := engine["ScannedCount"].(float64)
			return strings.HasPrefix(what, "Query") && more && (units(engine) > units(model) || counted == model["ScannedCount"].(float64)+1)
		},
	},
	{
		engine: "versitygw",
		what:   "A conditional deletion of what never existed fails with PreconditionFailed. AWS documents NoSuchKey; the service takes either.",
		aws:    "S3 answers Not Found if the object of a conditional deletion does not exist (S3 User Guide, conditional deletes).",
		explains: func(_ string, engine, model object) bool {
			return engine["__type"] == "PreconditionFailed" && model["__type"] == "NoSuchKey"
		},
	},
	{
		engine: "versitygw ministack",
		what:   "A later page repeats versions, or leaves some out. Both engines are wrong; TestVersionsArePaged tests the model.",
		aws:    `VersionIdMarker: "Specifies the object version you want to start listing from." MaxKeys: "Sets the maximum number of keys returned in the response." (API reference, ListObjectVersions)`,
		explains: func(what string, _, _ object) bool {
			return strings.HasPrefix(what, "list versions") && !strings.HasSuffix(what, " 1000")
		},
	},
	{
		engine: "ministack",
		what:   "A conditional deletion over a delete marker fails with NoSuchKey, as if nothing was there. S3 answers PreconditionFailed; the service takes either.",
		aws:    "If the current version is a delete marker, a conditional deletion fails with 412 (S3 User Guide, conditional deletes).",
		explains: func(what string, engine, model object) bool {
			return isDelete(what) && engine["__type"] == "NoSuchKey" && model["__type"] == "PreconditionFailed"
		},
	},
	{
		engine:   "versitygw",
		what:     "A conditional upload over a delete marker fails. versitygw is wrong.",
		aws:      "A conditional write succeeds if the current version is a delete marker (S3 User Guide, conditional writes).",
		diverges: true,
		explains: func(what string, engine, model object) bool {
			return strings.HasPrefix(what, "put") && engine["__type"] == "PreconditionFailed" && model["stored"] != nil
		},
	},
	{
		engine:   "versitygw",
		what:     "A deletion of what does not exist makes no delete marker. versitygw is wrong.",
		aws:      "A deletion without a version id inserts a delete marker (S3 User Guide, deleting object versions).",
		diverges: true,
		explains: func(what string, engine, model object) bool {
			return isDelete(what) && model["marker"] == true && engine["marker"] == false
		},
	},
	{
		engine: "local-kms",
		what:   "Another key than the ciphertext's is an InvalidCiphertextException. local-kms is wrong.",
		aws:    `IncorrectKeyException: "The request was rejected because the specified KMS key cannot decrypt the data." (API reference, Decrypt)`,
		explains: func(_ string, engine, model object) bool {
			return engine["__type"] == "InvalidCiphertextException" && model["__type"] == "IncorrectKeyException"
		},
	},
}

func isDelete(what string) bool { return strings.HasPrefix(what, "delete files/") }

func units(out object) float64 {
	capacity, _ := out["ConsumedCapacity"].(object)
	n, _ := capacity["CapacityUnits"].(float64)
	return n
}

// engineName is the engine that the variable chooses.
func engineName(variable string) string {
	if name := os.Getenv(variable); name != "" {
		return name
	}
	return map[string]string{"SIGNALBOX_DYNAMODB": "extenddb", "SIGNALBOX_S3": "versitygw", "SIGNALBOX_KMS": "signalbox"}[variable]
}

// differ compares two responses. It returns "" if they are the same or their difference is
// listed, and whether it is listed as diverging. engine is the variable that chooses the
// engine.
func differ(engine, what string, fromEngine, fromModel object) (diff string, diverged bool) {
	fromEngine, fromModel = essence(fromEngine), essence(fromModel)
	if diff = cmp.Diff(fromEngine, fromModel); diff == "" {
		return "", false
	}
	for _, d := range differences {
		if slices.Contains(strings.Fields(d.engine), engineName(engine)) && d.explains(what, fromEngine, fromModel) {
			return "", d.diverges
		}
	}
	return diff, false
}

// essence leaves out the messages of errors: engines word them in their own ways, and
// the service reads codes only.
func essence(out object) object {
	out = maps.Clone(out)
	maps.DeleteFunc(out, func(member string, _ any) bool { return strings.EqualFold(member, "message") })
	reasons, _ := out["CancellationReasons"].([]any)
	for i := range reasons {
		reasons[i] = essence(reasons[i].(object))
	}
	return out
}
