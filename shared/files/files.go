// Package files deletes the files of workspaces, for good. A file is its S3
// object, files/<workspace id>/<file id>, and nothing besides: there is no
// second store that could disagree. Ownership is the key: a file of another
// workspace is simply not found.
//
// It guards two promises. After a successful Delete no version of the object's
// bytes is left, whether the bucket's versioning is off, on or suspended; and a
// Delete that failed anywhere, or a process that died, is finished by the next
// Delete of the same file, and until then the file can be read by nobody who
// asks for it by its key.
package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/shared/ids"
)

// ErrNotFound says that the workspace has no such file: no version and no
// delete marker of it is left.
var ErrNotFound = errors.New("no such file")

// rounds bounds how often a Delete starts over because the file was written
// again meanwhile.
const rounds = 10

type deleter interface {
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	versionDeleter
	ListObjectVersions(context.Context, *s3.ListObjectVersionsInput, ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error)
}

// Store is the bucket with the files of all workspaces.
type Store struct {
	s3     deleter
	bucket string
}

// NewStore deletes files in the bucket of that name.
func NewStore(client deleter, bucket string) *Store {
	return &Store{s3: client, bucket: bucket}
}

// Receipt is the evidence of a deletion.
type Receipt struct {
	// Versions is how many versions of the file's bytes this call removed.
	Versions int
	// AnswerLost says that an attempt of this call may have been applied without
	// our hearing of it. With ErrNotFound: the file may have been there.
	AnswerLost bool
}

// Key is where a workspace's file lies in the bucket.
func Key(w ids.Workspace, f ids.File) string {
	return "files/" + string(w) + "/" + string(f)
}

// Delete removes every version of the workspace's file. It returns ErrNotFound
// where nothing of it was there. Of any number of calls at once on an
// unversioned bucket exactly one returns nil if S3 answered all of them. After
// any other error some versions may be left, out of sight, and Delete again goes
// on from there: where one call has not the time for all of them, several do it.
// The receipt counts what this call removed even then.
func (s *Store) Delete(ctx context.Context, w ids.Workspace, f ids.File) (Receipt, error) {
	d := deletion{Store: s, key: Key(w, f)}
	for range rounds {
		current, err := d.hide(ctx)
		if err != nil {
			return d.receipt, fmt.Errorf("deleting a file: %w", err)
		}
		if current == erased {
			d.receipt.Versions++
			return d.receipt, nil
		}
		left, err := d.purge(ctx)
		switch {
		case err != nil:
			return d.receipt, fmt.Errorf("purging the versions of a file: %w", err)
		case left == visible:
			continue // written again since: hide it first
		case current == absent && !d.removed:
			return d.receipt, ErrNotFound
		}
		return d.receipt, nil
	}
	return d.receipt, errors.New("deleting a file: it is written again and again")
}

// deletion is one Delete under way.
type deletion struct {
	*Store
	key     string
	removed bool // something, were it only a delete marker
	receipt Receipt
}

// state is what is known of the object's current version.
type state int

const (
	absent  state = iota // nothing, or a delete marker
	erased               // it was the only version, and is gone
	hidden               // a delete marker of ours covers what is left
	visible              // it can be read
)
