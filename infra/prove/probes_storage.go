package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
)

const (
	conditionalDelete = "Amazon S3 User Guide, \"How to perform conditional deletes\""
	deleteObject      = "Amazon S3 API Reference, DeleteObject"
	deleteObjects     = "Amazon S3 API Reference, DeleteObjects"
	s3Permissions     = "Amazon S3 User Guide, \"Required permissions for Amazon S3 API operations\""
	tableEncryption   = "DynamoDB Developer Guide, \"DynamoDB encryption at rest: usage notes\" and \"Using customer managed keys\""
	leadingKeys       = "DynamoDB Developer Guide, \"Using IAM policy conditions for fine-grained access control\""
)

// storageProbes are about what the functions' roles may do, and what DynamoDB and S3
// answer. They ask through the API, and look at what is stored.
func storageProbes() []probe {
	return []probe{
		{
			id: "table-key", live: true,
			asks:    "whether kms:Decrypt through DynamoDB, for the table's name as context, is all that the functions need of the storage key",
			expects: "tables under the storage key, and GET, POST and DELETE read and write them",
			source:  tableEncryption + ": DynamoDB decrypts the table's key on behalf of the caller",
			ask:     askTableKey,
			wrong:   map[string]verdict{"table-key-denied": fail, "table-not-encrypted": fail},
		}, {
			id: "transaction", live: true,
			asks:    "whether dynamodb:LeadingKeys holds for each item inside a transaction",
			expects: "a POST with Idempotency-Key is a 201, and its repetition is the same credential",
			source:  leadingKeys + ": a transaction is authorised by the permissions of its underlying operations",
			ask:     askTransaction,
			wrong:   map[string]verdict{"transaction-denied": fail},
		}, {
			id: "conflicts", live: true,
			asks:    "whether 50 creations at once, in transactions under one workspace, all succeed (TransactionConflict)",
			expects: "fifty 201, fifty places in the order",
			source:  "DynamoDB Developer Guide, \"Transaction conflict handling\": the functions repeat what conflicts",
			ask:     askConflicts,
			wrong:   map[string]verdict{"conflict-500": fail},
		}, {
			id: "missing-file", live: true,
			asks:    "by which action and prefix S3 decides between 404 and 403 for a file that is not there",
			expects: "404 in our envelope",
			source:  s3Permissions + ": s3:ListBucket decides; ListVersions allows it with and without a prefix to compare",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				return a.refused(ctx, remove("file_missing", a.management), http.StatusNotFound)
			},
			wrong: map[string]verdict{"missing-file-500": fail},
		}, {
			id: "delete-file", live: true,
			asks:    "whether s3:DeleteObject with s3:if-match allows what the function sends (If-Match: *)",
			expects: "200, and nothing of the file is left",
			source:  conditionalDelete + ": the condition key s3:if-match",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				file, err := a.file(ctx)
				if err != nil {
					return finding{}, err
				}
				got, left, err := a.deleted(ctx, file, "")
				if err == nil && (got.status != http.StatusOK || left > 0) {
					return failed("%s, and %d versions of the file are left", got, left), nil
				}
				return passed("200, and nothing is left"), err
			},
			wrong: map[string]verdict{"delete-does-nothing": fail},
		}, {
			id: "delete-at-once", live: true,
			asks:    "whether of ten deletions of one file at once S3 lets one succeed",
			expects: "one 200, nine 404",
			source:  conditionalDelete + ": 409 or 404 for a concurrent write or delete; the functions repeat a 409",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				file, err := a.file(ctx)
				if err != nil {
					return finding{}, err
				}
				requests := make([]request, 10)
				for i := range requests {
					requests[i] = remove(file, a.standard)
				}
				_, statuses, err := a.sendAll(ctx, requests)
				if err == nil && (statuses[http.StatusOK] != 1 || statuses[http.StatusNotFound] != 9) {
					return failed("statuses %v", statuses), nil
				}
				return passed("statuses %v", statuses), err
			},
			wrong: map[string]verdict{"two-deleters": fail},
		}, {
			id:      "if-match-missing",
			asks:    "what S3 answers to If-Match: * on a key that is not there",
			expects: "404 NoSuchKey or 412 PreconditionFailed",
			source:  "two possible answers, both handled (" + conditionalDelete + " has both)",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				_, err := a.deleteIfThere(ctx, "files/prove/missing")
				if code := codeOf(err); code == "NoSuchKey" || code == "PreconditionFailed" {
					return passed("%s", code), nil
				}
				return failed("%s", outcome(err)), nil
			},
			wrong: map[string]verdict{"s3-missing-204": fail},
		}, {
			id:      "s3-answers",
			asks:    "that S3 answers a DeleteObject with its request id, and names the bucket in every listing: a deletion insists on both",
			expects: "both are there",
			source:  deleteObject + " and ListObjectVersions: response syntax; \"Common response headers\": x-amz-request-id",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				const key = "files/prove/present"
				if err := a.put(ctx, key); err != nil {
					return finding{}, err
				}
				out, err := a.deleteIfThere(ctx, key)
				if err != nil {
					return failed("If-Match: * on an object that is there: %v", err), nil
				}
				id, fromS3 := awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
				listed, err := a.s3.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: a.bucket(), Prefix: aws.String(key)})
				if err == nil && (!fromS3 || id == "" || aws.ToString(listed.Name) != *a.bucket()) {
					return failed("request id %q, listing of %q", id, aws.ToString(listed.Name)), nil
				}
				return passed("both are there"), err
			},
			wrong: map[string]verdict{"s3-without-request-id": fail, "s3-listing-unnamed": fail},
		}, {
			id: "versions", stage: second,
			asks:    "whether a deletion in a versioned bucket leaves no version: DeleteObjects by version id with s3:DeleteObjectVersion, and no s3:DeleteObject",
			expects: "200, and no version or marker of three is left",
			source:  s3Permissions + ": DeleteObjects with version ids needs s3:DeleteObjectVersion",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				file, err := a.file(ctx)
				for range 2 {
					if err == nil {
						err = a.put(ctx, "files/"+a.workspace+"/"+file)
					}
				}
				if err != nil {
					return finding{}, err
				}
				before, err := a.stored(ctx, file)
				if err != nil || before != 3 {
					return failed("three uploads are %d versions", before), err
				}
				got, left, err := a.deleted(ctx, file, "")
				if err == nil && (got.status != http.StatusOK || left > 0) {
					return failed("%s, and %d versions or markers are left", got, left), nil
				}
				return passed("200, and of 3 versions none is left"), err
			},
			wrong: map[string]verdict{"versions-left": fail},
		}, {
			id: "hidden-file", stage: second,
			asks:    "what S3 answers to If-Match: * where the current version is a delete marker",
			expects: "412 or 404 from S3; through the API 200, and nothing is left",
			source:  "two possible answers, both handled: 412 PreconditionFailed or 404 NoSuchKey (" + conditionalDelete + ")",
			ask:     askHidden,
			wrong:   map[string]verdict{"hidden-file-left": fail},
		}, {
			id: "confirmed", stage: second,
			asks:    "that DeleteObjects confirms each version it deleted, by its id",
			expects: "each version id is in the answer",
			source:  deleteObjects + ": Deleted lists each object with VersionId, unless Quiet",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				const key = "files/prove/confirmed"
				var versions []s3types.ObjectIdentifier
				for range 2 {
					out, err := a.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: a.bucket(), Key: aws.String(key), Body: strings.NewReader("x")})
					if err != nil {
						return finding{}, err
					}
					versions = append(versions, s3types.ObjectIdentifier{Key: aws.String(key), VersionId: out.VersionId})
				}
				out, err := a.s3.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: a.bucket(), Delete: &s3types.Delete{Objects: versions}})
				if err != nil {
					return finding{}, err
				}
				confirmed := map[string]bool{}
				for _, d := range out.Deleted {
					confirmed[aws.ToString(d.VersionId)] = true
				}
				for _, v := range versions {
					if !confirmed[aws.ToString(v.VersionId)] {
						return failed("%d of 2 versions confirmed", len(out.Deleted)), nil
					}
				}
				return passed("both versions are in the answer"), nil
			},
			wrong: map[string]verdict{"s3-unconfirmed": fail},
		},
	}
}

// outcome shows how a deletion ended.
func outcome(err error) string {
	if err == nil {
		return "204"
	}
	return err.Error()
}

func (a *asker) bucket() *string { return aws.String(a.outputs["FilesBucketName"]) }

func (a *asker) put(ctx context.Context, key string) error {
	_, err := a.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: a.bucket(), Key: &key, Body: strings.NewReader("a file of make prove")})
	if err != nil {
		return fmt.Errorf("putting an object: %w", err)
	}
	return nil
}

func (a *asker) deleteIfThere(ctx context.Context, key string) (*s3.DeleteObjectOutput, error) {
	return a.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: a.bucket(), Key: &key, IfMatch: aws.String("*")})
}

func askTableKey(ctx context.Context, a *asker) (finding, error) {
	for _, name := range []string{"AccessTableName", "CredentialsTableName", "SyncJobsTableName", "ControlTableName"} {
		out, err := a.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(a.outputs[name])})
		if err != nil {
			return finding{}, err
		}
		sse := out.Table.SSEDescription
		if sse == nil || sse.SSEType != dbtypes.SSETypeKms || aws.ToString(sse.KMSMasterKeyArn) != a.outputs["StorageKeyArn"] {
			return failed("%s is not under the storage key", name), nil
		}
	}
	for i, r := range []request{get(a.job, a.management), post(a.management, newCredential()), remove("file_unknown", a.management)} {
		got, err := a.send(ctx, r)
		if err != nil {
			return finding{}, err
		}
		if got.status != []int{http.StatusOK, http.StatusCreated, http.StatusNotFound}[i] {
			return failed("%s: %s", r.method, got), nil
		}
	}
	return passed("four tables under the storage key; GET, POST and DELETE read and write them"), nil
}

// place is the part of a created credential that is compared.
type place struct {
	Data struct {
		ID        string `json:"id"`
		SortOrder int    `json:"sort_order"`
	} `json:"data"`
}

func askTransaction(ctx context.Context, a *asker) (finding, error) {
	r := post(a.management, newCredential()).with("Idempotency-Key", "prove-"+newID())
	var ids [2]string
	for i := range ids {
		got, err := a.send(ctx, r)
		if err != nil {
			return finding{}, err
		}
		var made place
		if err := json.Unmarshal([]byte(got.body), &made); err != nil || got.status != http.StatusCreated || made.Data.ID == "" {
			return failed("%s", got), nil
		}
		ids[i] = made.Data.ID
	}
	if ids[0] != ids[1] {
		return failed("two credentials under one Idempotency-Key"), nil
	}
	return passed("201 twice, one credential"), nil
}

func askConflicts(ctx context.Context, a *asker) (finding, error) {
	const n = 50
	requests := make([]request, n)
	for i := range requests {
		requests[i] = post(a.management, newCredential()).with("Idempotency-Key", "prove-"+newID())
	}
	answers, statuses, err := a.sendAll(ctx, requests)
	if err != nil {
		return finding{}, err
	}
	places := map[int]bool{}
	for _, got := range answers {
		var made place
		if json.Unmarshal([]byte(got.body), &made) == nil && got.status == http.StatusCreated {
			places[made.Data.SortOrder] = true
		}
	}
	if statuses[http.StatusCreated] != n || len(places) != n {
		return failed("statuses %v, %d places in the order", statuses, len(places)), nil
	}
	return passed("%d 201, %d places in the order", n, n), nil
}

func askHidden(ctx context.Context, a *asker) (finding, error) {
	file, err := a.file(ctx)
	if err != nil {
		return finding{}, err
	}
	key := "files/" + a.workspace + "/" + file
	if _, err := a.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: a.bucket(), Key: &key}); err != nil {
		return finding{}, err
	}
	_, err = a.deleteIfThere(ctx, key)
	code := codeOf(err)
	if code != "PreconditionFailed" && code != "NoSuchKey" {
		return failed("If-Match: * on a delete marker: %s", outcome(err)), nil
	}
	got, left, err := a.deleted(ctx, file, "")
	if err == nil && (got.status != http.StatusOK || left > 0) {
		return failed("%s from S3; %s, and %d versions or markers are left", code, got, left), nil
	}
	return passed("%s from S3; 200, and nothing is left", code), err
}
