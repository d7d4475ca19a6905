package files

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"signalbox.dev/shared/calls"
)

// hide deletes the current version on condition that there is one; S3 decides
// between callers. On an unversioned bucket the bytes are then gone; on any other
// a delete marker hides them. S3 reports which in headers only: a response without
// any of them proves nothing.
func (d *deletion) hide(ctx context.Context) (state, error) {
	for attempt := 1; ; attempt++ {
		out, err := d.s3.DeleteObject(ctx, &s3.DeleteObjectInput{
			Bucket: &d.bucket, Key: &d.key,
			IfMatch: aws.String("*"),
		}, d.noteRepeats)
		switch codeOf(err) {
		case "":
			_, fromS3 := awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
			if fromS3 && out.VersionId == nil && !aws.ToBool(out.DeleteMarker) {
				return erased, nil
			}
			return hidden, nil
		case "NoSuchKey", "PreconditionFailed":
			return absent, nil
		case "ConditionalRequestConflict", "OperationAborted":
			// A write or delete at the same time: nothing was applied.
			if err := calls.Pause(ctx, attempt); err != nil {
				return absent, err
			}
		default:
			return absent, err
		}
	}
}

// codeOf is S3's code of a failed call; "" where it did not fail.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return "no answer"
}

// noteRepeats sets AnswerLost where the SDK repeats a call: the attempt before may
// have been applied and its response lost.
func (d *deletion) noteRepeats(o *s3.Options) {
	o.Retryer = &retryer{Retryer: o.Retryer, repeated: &d.receipt.AnswerLost}
}

type retryer struct {
	aws.Retryer
	repeated *bool
}

// IsErrorRetryable implements aws.Retryer.
func (r *retryer) IsErrorRetryable(err error) bool {
	again := r.Retryer.IsErrorRetryable(err)
	*r.repeated = *r.repeated || again
	return again
}
