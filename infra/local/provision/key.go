package provision

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"signalbox.dev/infra/local/template"
)

// key finds the key by its recorded ARN, because a key has no name, or makes one. A
// crash before it is recorded leaves an unused key.
func (p *provisioner) key(ctx context.Context, id string) error {
	arn := p.existing[id]
	if arn == "" {
		created, err := p.keys.CreateKey(ctx, &kms.CreateKeyInput{})
		if err != nil {
			return fmt.Errorf("creating key %s: %w", id, err)
		}
		arn = aws.ToString(created.KeyMetadata.Arn)
	}
	found, err := p.keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &arn})
	var missing *types.NotFoundException
	if errors.As(err, &missing) {
		return fmt.Errorf("key %s (%s): %w, and everything that it sealed is lost", id, arn, errGone)
	}
	if err != nil {
		return fmt.Errorf("finding key %s: %w", id, err)
	}
	p.done(id, template.Attributes{"Ref": aws.ToString(found.KeyMetadata.KeyId), "Arn": arn})
	return nil
}
