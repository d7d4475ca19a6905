package kit

import (
	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/shared/calls"
)

// OtherAccess is another access table of each model, for restores.
const OtherAccess = "other-access"

// ModelKeys are the KMS keys of each model. New credentials are sealed under the first.
var ModelKeys = [3]string{
	"arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000000",
	"arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000001",
	"arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000002",
}

// OnModel returns a new model of AWS in place of engines, with a bucket of this versioning.
func OnModel(versioning string) (Engines, *awsmodel.World) {
	at := awsclients.Engines{DynamoDB: "http://dynamodb.model", KMS: "http://kms.model", S3: "http://s3.model", Region: "us-east-1", AccessKeyID: "an-id", SecretAccessKey: "a-secret"}
	o := Outputs{Access: "access", Credentials: "credentials", Jobs: "sync-jobs", Control: "control", Files: "files", SealingKey: ModelKeys[0]}
	world := awsmodel.New(awsmodel.Config{
		Tables: []string{o.Access, o.Credentials, o.Jobs, o.Control, OtherAccess}, Bucket: o.Files, Versioning: versioning, Keys: ModelKeys[:],
	})
	e := Engines{Config: at.Config(), Tables: o}
	e.Config.HTTPClient, e.Config.Retryer = world, calls.Retryer
	return e, world
}
