package main

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
)

// conditional is a backend whose DeleteObject honours If-Match: * as S3 does:
// the object is deleted if it exists, else the answer is 412, and of any number
// of deletes at once one succeeds. versitygw 1.8.0 answers 412 for an object that
// exists, 204 for one that does not, and lets every delete win.
type conditional struct {
	backend.Backend
	locks [256]sync.Mutex
	seed  maphash.Seed
	once  sync.Once
}

// DeleteObject implements backend.Backend.
func (c *conditional) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	lock := c.lockOf(aws.ToString(in.Bucket) + "/" + aws.ToString(in.Key))
	lock.Lock()
	defer lock.Unlock()
	if aws.ToString(in.IfMatch) != "*" {
		return c.Backend.DeleteObject(ctx, in)
	}
	if _, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: in.Bucket, Key: in.Key}); err != nil {
		return nil, s3err.GetAPIError(s3err.ErrPreconditionFailed)
	}
	unconditional := *in
	unconditional.IfMatch = nil
	return c.Backend.DeleteObject(ctx, &unconditional)
}

// lockOf is the lock of a key, shared with a few others.
func (c *conditional) lockOf(key string) *sync.Mutex {
	c.once.Do(func() { c.seed = maphash.MakeSeed() })
	return &c.locks[maphash.String(c.seed, key)%uint64(len(c.locks))]
}
