package seal_test

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/test/awsmodel"
)

// The keys that KMS has. An opener may trust the last one too.
const (
	keyARN     = "arn:aws:kms:us-east-1:000000000000:key/11111111-2222-3333-4444-555555555555"
	nextARN    = "arn:aws:kms:us-east-1:000000000000:key/99999999-2222-3333-4444-555555555555"
	trustedARN = "arn:aws:kms:us-east-1:000000000000:key/33333333-2222-3333-4444-555555555555"
)

var errKMS = errors.New("KMS is out of reach")

// model is a client of KMS with these keys. Their material is fixed, so frozen vectors open.
var model = kms.New(kms.Options{
	Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{},
	HTTPClient: awsmodel.New(awsmodel.Config{Keys: []string{keyARN, nextARN, trustedARN}}),
})

// faultyKMS is KMS with faults. The functions alter its responses.
type faultyKMS struct {
	generated   func(*kms.GenerateDataKeyOutput)
	decrypted   func(*kms.DecryptOutput)
	reEncrypted func(*kms.ReEncryptOutput)
	failing     string // the ARN of a key that is out of reach
	asked       int    // how often ReEncrypt was called
}

// answer returns what KMS answers, if the keys are within reach.
func answer[In, Out any](ctx context.Context, k *faultyKMS, call func(context.Context, *In, ...func(*kms.Options)) (*Out, error), in *In, alter func(*Out), keys ...*string) (*Out, error) {
	if slices.ContainsFunc(keys, func(arn *string) bool { return *arn == k.failing }) {
		return nil, errKMS
	}
	out, err := call(ctx, in)
	if err == nil && alter != nil {
		alter(out)
	}
	return out, err
}

func (k *faultyKMS) GenerateDataKey(ctx context.Context, in *kms.GenerateDataKeyInput, _ ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error) {
	return answer(ctx, k, model.GenerateDataKey, in, k.generated, in.KeyId)
}

func (k *faultyKMS) Decrypt(ctx context.Context, in *kms.DecryptInput, _ ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	return answer(ctx, k, model.Decrypt, in, k.decrypted, in.KeyId)
}

func (k *faultyKMS) ReEncrypt(ctx context.Context, in *kms.ReEncryptInput, _ ...func(*kms.Options)) (*kms.ReEncryptOutput, error) {
	k.asked++
	return answer(ctx, k, model.ReEncrypt, in, k.reEncrypted, in.SourceKeyId, in.DestinationKeyId)
}
