// Package provision makes the tables, keys and buckets that the template declares, in
// engines that run on this machine. It sets only properties on which requests depend: key
// schema, TTL, versioning. It runs at every start and does not change existing resources.
// If a resource that it made is gone, that is an error: a new key would open nothing that
// the old one sealed, and a new table would be empty.
package provision

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/local/template"
	"signalbox.dev/infra/reach"
)

// provisioner makes resources and collects their attributes.
type provisioner struct {
	db   *dynamodb.Client
	keys *kms.Client
	s3   *s3.Client

	// existing maps the logical ids that earlier calls recorded to ARNs.
	existing map[string]string
	prefix   string
	warn     func(text string)

	mu   sync.Mutex
	made template.Resources
}

// Make makes missing resources, concurrently, and returns all names. It records ARNs in
// dir, because keys have no names in the engines. A prefix means a DynamoDB that others use
// too; the names of the tables begin with it. That DynamoDB may keep its tables in memory
// only: if all of them are gone, Make warns and makes them again.
func Make(ctx context.Context, t *template.Template, c aws.Config, dir, prefix string, warn func(text string)) (template.Resources, error) {
	tables, err := t.Tables()
	if err != nil {
		return nil, err
	}
	buckets, err := t.Buckets()
	if err != nil {
		return nil, err
	}
	keys, err := t.Keys()
	if err != nil {
		return nil, err
	}
	p := &provisioner{
		db: reach.DynamoDB(c), keys: reach.KMS(c), s3: reach.S3(c),
		made: make(template.Resources), prefix: prefix, warn: warn,
	}
	if p.existing, err = readResources(dir); err != nil {
		return nil, err
	}
	if err := p.forget(ctx, tables); err != nil {
		return nil, err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, table := range tables {
		all.Go(func() error { return p.table(ctx, table) })
	}
	for _, bucket := range buckets {
		all.Go(func() error { return p.bucket(ctx, bucket) })
	}
	for _, key := range keys {
		all.Go(func() error { return p.key(ctx, key.ID) })
	}
	if err := all.Wait(); err != nil {
		return nil, fmt.Errorf("making the template's resources: %w", err)
	}
	return maps.Clone(p.made), p.writeResources(dir)
}

func (p *provisioner) done(id string, a template.Attributes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[id] = a
}
