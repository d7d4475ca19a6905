// Package provision makes the tables, keys and buckets that the template declares, in
// engines that run on this machine. It sets only properties on which requests depend: key
// schema, TTL, versioning. It runs at every start and does not change existing resources.
// If a resource that it made is gone, that is an error: a new key would open nothing that
// the old one sealed, and a new table would be empty.
package provision

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/local/state"
	"signalbox.dev/infra/local/template"
)

// ResourcesFile maps the logical ids of all resources made to ARNs.
const ResourcesFile = "resources.json"

// errGone is the error of a resource that was made and does not exist.
var errGone = &state.Damage{Err: errors.New("it is gone")}

// provisioner makes resources and collects their attributes.
type provisioner struct {
	db   *dynamodb.Client
	keys *kms.Client
	s3   *s3.Client

	// existing maps the logical ids that earlier calls recorded to ARNs.
	existing map[string]string

	mu   sync.Mutex
	made template.Resources
}

// Make makes missing resources and returns all names. It records ARNs in ResourcesFile of the
// folder, because keys have no names in the engines.
func Make(ctx context.Context, t *template.Template, clients aws.Config, dir string) (template.Resources, error) {
	tables, failedTables := template.Declared[table](t, "AWS::DynamoDB::Table")
	buckets, failedBuckets := template.Declared[bucket](t, "AWS::S3::Bucket")
	keys, failedKeys := template.Declared[struct{}](t, "AWS::KMS::Key")
	if err := errors.Join(failedTables, failedBuckets, failedKeys); err != nil {
		return nil, err
	}
	p := &provisioner{
		db: awsclients.DynamoDB(clients), keys: awsclients.KMS(clients), s3: awsclients.S3(clients),
		existing: make(map[string]string), made: make(template.Resources),
	}
	record := filepath.Join(dir, ResourcesFile)
	if _, err := state.Read(record, &p.existing, p.check); err != nil {
		return nil, err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, it := range tables { // at once: an engine needs a second for each
		all.Go(func() error { return p.table(ctx, it) })
	}
	for _, it := range buckets {
		all.Go(func() error { return p.bucket(ctx, it) })
	}
	for _, it := range keys {
		all.Go(func() error { return p.key(ctx, it.ID) })
	}
	if err := all.Wait(); err != nil {
		return nil, fmt.Errorf("making the template's resources: %w", err)
	}
	for id, attributes := range p.made {
		p.existing[id] = attributes["Arn"]
	}
	if err := state.Write(record, p.existing); err != nil {
		return nil, fmt.Errorf("recording what was made: %w", err)
	}
	return p.made, nil
}

func (p *provisioner) check() error {
	if len(p.existing) == 0 {
		return errors.New("it names nothing")
	}
	return nil
}

// isMissing reports whether an engine has answered that a resource does not exist.
func isMissing(err error) bool {
	failed, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains([]string{"ResourceNotFoundException", "NotFoundException", "NotFound"}, failed.ErrorCode())
}

// mustMake reports whether the resource must be made, from the error of a search for it.
func (p *provisioner) mustMake(id string, err error) (bool, error) {
	switch {
	case !isMissing(err):
		return false, err
	case p.existing[id] != "":
		return false, errGone
	}
	return true, nil
}

func (p *provisioner) done(id string, a template.Attributes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[id] = a
}

// bucket has the properties that requests depend on.
type bucket struct {
	VersioningConfiguration *types.VersioningConfiguration
}

func (p *provisioner) bucket(ctx context.Context, b template.Resource[bucket]) error {
	// Upper case is not allowed in bucket names.
	name := strings.ToLower(template.StackName + "-" + b.ID)
	_, err := p.s3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name})
	missing, err := p.mustMake(b.ID, err)
	if missing {
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
	if isMissing(err) {
		return fmt.Errorf("key %s (%s): %w, and everything that it sealed is lost", id, arn, errGone)
	}
	if err != nil {
		return fmt.Errorf("finding key %s: %w", id, err)
	}
	p.done(id, template.Attributes{"Ref": aws.ToString(found.KeyMetadata.KeyId), "Arn": arn})
	return nil
}
