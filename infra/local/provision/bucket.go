package provision

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/infra/local/template"
)

func (p *provisioner) bucket(ctx context.Context, b template.Resource[template.Bucket]) error {
	// Upper case is not allowed in bucket names.
	name := strings.ToLower(template.StackName + "-" + b.ID)
	_, err := p.s3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name})
	var missing *types.NotFound
	switch {
	case errors.As(err, &missing) && p.existing[b.ID] != "":
		err = errGone
	case errors.As(err, &missing):
		_, err = p.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
	}
	if versioning := b.Properties.VersioningConfiguration; err == nil && versioning != nil {
		_, err = p.s3.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{Bucket: &name, VersioningConfiguration: versioning})
	}
	if err != nil {
		return fmt.Errorf("bucket %s: %w", name, err)
	}
	p.done(b.ID, template.Attributes{"Ref": name, "Arn": "arn:aws:s3:::" + name})
	return nil
}
