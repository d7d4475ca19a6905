package model_test

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// difference is what an engine does differently from AWS.
type difference struct {
	engine string // one or more
	what   string // and whose fault it is
	aws    string // AWS's sentence in quotes, or ours with AWS's page
	// diverges means that both store something else from then on.
	diverges bool
	// ignore makes the responses equal, if they differ in this.
	ignore func(what string, in, engine, model object)
}

// differences are all that the model and the engines may disagree on.
var differences = []difference{
	{
		engine: "extenddb",
		what:   "The last page of a Query, if it is full, has no LastEvaluatedKey. AWS allows both, and returns one.",
		aws:    `"If LastEvaluatedKey is not empty, it does not necessarily mean that there is more data in the result set." (API reference, Query)`,
		ignore: func(what string, in, engine, model object) {
			if what == "Query" && in["Limit"] != nil && engine["LastEvaluatedKey"] == nil {
				delete(model, "LastEvaluatedKey")
			}
		},
	},
	{
		engine:   "dynamodb-local",
		what:     "An update that does not fit the item fails a transaction as a ValidationException. DynamoDB Local is wrong.",
		aws:      `"Code: ValidationError [...] The provided expression refers to an attribute that does not exist in the item." (API reference, TransactWriteItems, cancellation reasons)`,
		diverges: true,
		ignore: func(what string, _, engine, model object) {
			if what == "TransactWriteItems" && engine["__type"] == "ValidationException" && model["__type"] == "TransactionCanceledException" {
				clear(engine)
				clear(model)
			}
		},
	},
	{
		engine: "dynamodb-local",
		what:   "A deletion returns the consumed capacity unasked. DynamoDB Local is wrong.",
		aws:    `"ConsumedCapacity is only returned if the ReturnConsumedCapacity parameter was specified." (API reference, DeleteItem)`,
		ignore: func(what string, _, engine, _ object) {
			if what == "DeleteItem" {
				delete(engine, "ConsumedCapacity")
			}
		},
	},
	{
		engine: "dynamodb-local",
		what:   "A Query that reads nothing consumes no capacity. The model counts one unit.",
		aws:    "AWS rounds a read up to whole units of 4 KB (Developer Guide, read consumption).",
		ignore: func(what string, _, engine, model object) {
			if consumed, ok := engine["ConsumedCapacity"].(object); ok && what == "Query" && consumed["CapacityUnits"] == 0.0 {
				delete(engine, "ConsumedCapacity")
				delete(model, "ConsumedCapacity")
			}
		},
	},
	{
		engine: "versitygw",
		what:   "A conditional deletion of what never existed fails with PreconditionFailed. AWS documents NoSuchKey; the service takes either.",
		aws:    "S3 answers Not Found if the object of a conditional deletion does not exist (S3 User Guide, conditional deletes).",
		ignore: func(what string, _, engine, model object) {
			if engine["__type"] == "PreconditionFailed" && model["__type"] == "NoSuchKey" {
				model["__type"] = engine["__type"]
			}
		},
	},
	{
		engine: "versitygw",
		what:   "A page of versions can repeat the last one of the page before, or leave some out. versitygw is wrong.",
		aws:    `VersionIdMarker: "Specifies the object version you want to start listing from." (API reference, ListObjectVersions)`,
		ignore: ignorePages,
	},
	{
		engine: "s3mock",
		what:   "All versions of a key are on one page. S3Mock is wrong.",
		aws:    `MaxKeys: "Sets the maximum number of keys returned in the response." (API reference, ListObjectVersions)`,
		ignore: ignorePages,
	},
	{
		engine: "s3mock",
		what:   "A page of objects can leave some out if they have versions. S3Mock is wrong.",
		aws:    "A listing that leaves keys out is truncated, and has a token for the next page (API reference, ListObjectsV2).",
		ignore: func(what string, _, engine, model object) {
			if strings.HasPrefix(what, `list "`) && !strings.HasSuffix(what, " 1000") {
				clear(engine)
				clear(model)
			}
		},
	},
	{
		engine:   "s3mock",
		what:     "A deletion returns the version that it hides instead of the delete marker. S3Mock is wrong.",
		aws:      `VersionId: "Returns the version ID of the delete marker created as a result of the DELETE operation." (API reference, DeleteObject)`,
		diverges: true, // in the order in which both show their versions
		ignore: func(what string, _, engine, model object) {
			if strings.HasPrefix(what, "delete files/") && model["marker"] == true {
				engine["version"] = model["version"]
			}
		},
	},
	{
		engine: "moto",
		what:   "Decrypt and ReEncrypt do not name the algorithm. moto is wrong.",
		aws:    `EncryptionAlgorithm: "The encryption algorithm that was used to decrypt the ciphertext." (API reference, Decrypt)`,
		ignore: func(_ string, _, engine, model object) {
			for _, member := range []string{"EncryptionAlgorithm", "SourceEncryptionAlgorithm", "DestinationEncryptionAlgorithm"} {
				if engine[member] == nil {
					delete(model, member)
				}
			}
		},
	},
	{
		engine:   "moto",
		what:     "ReEncrypt ignores SourceKeyId. moto is wrong.",
		aws:      `"If you identify a different KMS key, the ReEncrypt operation throws an IncorrectKeyException." (API reference, ReEncrypt)`,
		diverges: true,
		ignore: func(what string, _, engine, model object) {
			if what == "ReEncrypt" && engine["__type"] == nil && (model["__type"] == "IncorrectKeyException" || model["__type"] == "NotFoundException") {
				clear(engine)
				clear(model)
			}
		},
	},
	{
		engine: "moto",
		what:   "Of several faults in one request moto reports another one first, of which AWS documents no order; another key than the ciphertext's is an AccessDeniedException, which is wrong.",
		aws:    `IncorrectKeyException: "The request was rejected because the specified KMS key cannot decrypt the data." (API reference, Decrypt)`,
		ignore: func(_ string, _, engine, model object) {
			several := []any{"AccessDeniedException", "InvalidCiphertextException", "NotFoundException", "IncorrectKeyException"}
			if slices.Contains(several, engine["__type"]) && slices.Contains(several, model["__type"]) {
				model["__type"] = engine["__type"]
			}
		},
	},
	{
		engine: "s3mock",
		what:   "No response has a request id. S3Mock is wrong.",
		aws:    "Each response of S3 has an id, x-amz-request-id (API reference, common response headers).",
		ignore: func(_ string, _, engine, model object) {
			delete(engine, "has request id")
			delete(model, "has request id")
		},
	},
	{
		engine: "s3mock",
		what:   "A deletion in a bucket without versioning claims a delete marker. S3Mock is wrong.",
		aws:    `"Indicates whether the specified object version that was permanently deleted was (true) or was not (false) a delete marker" (API reference, DeleteObject)`,
		ignore: func(what string, _, engine, model object) {
			if strings.HasPrefix(what, "delete files/") && model["version"] == "" {
				engine["marker"] = model["marker"]
			}
		},
	},
	{
		engine:   "versitygw",
		what:     "A conditional upload over a delete marker fails. versitygw is wrong.",
		aws:      "A conditional write succeeds if the current version is a delete marker (S3 User Guide, conditional writes).",
		diverges: true,
		ignore: func(what string, _, engine, model object) {
			if strings.HasPrefix(what, "put") && engine["__type"] == "PreconditionFailed" && model["etag"] != nil {
				clear(engine)
				clear(model)
			}
		},
	},
	{
		engine:   "s3mock",
		what:     "After the newest version was deleted by its id, S3Mock takes the object for absent. S3Mock is wrong.",
		aws:      "If the current version is deleted by its id, the next most recent version becomes the current one (S3 User Guide, deleting object versions).",
		diverges: true,
		ignore: func(what string, _, engine, model object) {
			uploads := strings.HasPrefix(what, "put") && engine["etag"] != nil && model["__type"] == "PreconditionFailed"
			if uploads || strings.HasPrefix(what, "delete files/") && engine["__type"] == "NoSuchKey" && model["marker"] == true {
				clear(engine)
				clear(model)
			}
		},
	},
	{
		engine:   "versitygw s3mock",
		what:     "A deletion of what does not exist makes no delete marker. Both engines are wrong.",
		aws:      "A deletion without a version id inserts a delete marker (S3 User Guide, deleting object versions).",
		diverges: true,
		ignore: func(what string, _, engine, model object) {
			if strings.HasPrefix(what, "delete files/") && model["marker"] == true && engine["marker"] == false {
				clear(engine)
				clear(model)
			}
		},
	},
}

// ignorePages ignores a listing of versions by pages; TestVersionsArePaged has them.
func ignorePages(what string, _, engine, model object) {
	if strings.HasPrefix(what, "list versions") && !strings.HasSuffix(what, " 1000") {
		clear(engine)
		clear(model)
	}
}

// refused are the refusals of AWS that an engine lacks, by name. It accepts them, or
// refuses them with another code.
var refused = map[string]map[string]string{
	"extenddb": {
		"one path twice":                 overlap,
		"function of a value":            "The argument of attribute_exists is a path (Developer Guide, condition expressions).",
		"query with a filter on the key": `"A FilterExpression does not allow key attributes." (API reference, Query)`,
		"query of another attribute":     keysOnly,
		"query of a number":              keysOnly,
		"query from another partition":   `"Use the value that was returned for LastEvaluatedKey in the previous operation." (API reference, Query)`,
		"empty condition":                "DynamoDB Local refuses it too.",
		"operand with itself":            "DynamoDB Local refuses it too.",
		"a section twice":                "An update expression has each of its keywords at most once (API reference, UpdateItem).",
		"removal of a member of nothing": "DynamoDB Local refuses it too.",
	},
	"dynamodb-local": {
		"one item twice in a transaction": `"you cannot both ConditionCheck and Update the same item" (API reference, TransactWriteItems)`,
		"transaction with a wrong key":    `"Code: ValidationError [...] One or more parameter values were invalid" (API reference, TransactWriteItems, cancellation reasons)`,
	},
}

const (
	overlap  = "No two paths of an update expression may overlap (Developer Guide, update expressions)."
	keysOnly = `"The condition must perform an equality test on a single partition key value. The condition can optionally perform one of several comparison tests on a single sort key value." (API reference, Query)`
)

// engineName is the engine that the variable chooses.
func engineName(variable string) string {
	if name := os.Getenv(variable); name != "" {
		return name
	}
	return map[string]string{"SIGNALBOX_DYNAMODB": "extenddb", "SIGNALBOX_S3": "versitygw", "SIGNALBOX_KMS": "signalbox"}[variable]
}

// differ returns what differs between two responses and is not listed, or "", and
// whether they are listed as diverging. engine is the variable that chooses the engine.
func differ(engine, what string, in, fromEngine, fromModel object) (diff string, diverged bool) {
	name := engineName(engine)
	fromEngine, fromModel = essence(fromEngine), essence(fromModel)
	for _, d := range differences {
		if slices.Contains(strings.Fields(d.engine), name) && !cmp.Equal(fromEngine, fromModel) {
			before := []object{maps.Clone(fromEngine), maps.Clone(fromModel)}
			d.ignore(what, in, fromEngine, fromModel)
			diverged = diverged || d.diverges && !cmp.Equal(before, []object{fromEngine, fromModel})
		}
	}
	return cmp.Diff(fromEngine, fromModel), diverged
}

// essence leaves out the messages of errors: engines word them in their own ways, and
// the service reads codes only.
func essence(out object) object {
	out = maps.Clone(out)
	if out["__type"] != nil {
		delete(out, "message")
	}
	reasons, _ := out["CancellationReasons"].([]any)
	for i := range reasons {
		reasons[i] = essence(reasons[i].(object))
		delete(reasons[i].(object), "Message")
	}
	return out
}
