package files_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// fixture is one workspace in a new bucket with versioning.
type fixture struct {
	*testing.T
	bucket    kit.Bucket
	engines   kit.Engines
	workspace ids.Workspace
	store     *files.Store
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	engines := kit.Start(t)
	bucket := kit.Bucket{Client: s3.NewFromConfig(engines.Config), Name: engines.Bucket(t, types.BucketVersioningStatusEnabled)}
	return &fixture{
		T: t, bucket: bucket, engines: engines,
		workspace: ids.New[ids.Workspace](), store: files.NewStore(bucket, bucket.Name),
	}
}

func (s *fixture) put(f ids.File) {
	s.Helper()
	s.bucket.Put(s.T, files.Key(s.workspace, f), "content")
}

func (s *fixture) mark(f ids.File) {
	s.Helper()
	s.bucket.Hide(s.T, files.Key(s.workspace, f))
}

// head reads the stored file.
func (s *fixture) head(f ids.File) (*s3.HeadObjectOutput, error) {
	key := files.Key(s.workspace, f)
	return s.bucket.HeadObject(s.Context(), &s3.HeadObjectInput{Bucket: &s.bucket.Name, Key: &key})
}

// fill makes a history of the file: "w" writes a version, "m" adds a delete marker.
func (s *fixture) fill(f ids.File, history string) {
	for _, step := range history {
		map[rune]func(ids.File){'w': s.put, 'm': s.mark}[step](f)
	}
}

// left counts the versions and delete markers of this file. If f is "", it counts all
// files of the workspace.
func (s *fixture) left(f ids.File) int {
	s.Helper()
	found := s.bucket.Look(s.T, files.Key(s.workspace, f))
	if f == "" {
		return found.Siblings
	}
	return found.Left
}

// mustDelete deletes the file, and expects one of these numbers of removed versions.
func (s *fixture) mustDelete(f ids.File, versions ...int) {
	s.Helper()
	receipt, err := s.store.Delete(s.Context(), s.workspace, f)
	if err != nil || !slices.Contains(versions, receipt.Versions) || receipt.ResponseLost {
		s.Errorf("Delete: %+v, %v; want %v versions", receipt, err, versions)
	}
	if n := s.left(f); n != 0 {
		s.Errorf("after a successful Delete %d versions and markers are left", n)
	}
}

// through returns a client that meets these faults.
func (s *fixture) through(rules ...faults.Rule) (*s3.Client, *faults.Transport) {
	transport := faults.Wrap(s.engines.Config.HTTPClient)
	for _, rule := range rules {
		transport.Inject(rule)
	}
	config := s.engines.Config
	config.HTTPClient = transport
	return s3.NewFromConfig(config), transport
}

// inject makes the store meet these faults.
func (s *fixture) inject(rules ...faults.Rule) {
	client, _ := s.through(rules...)
	s.store = files.NewStore(client, s.bucket.Name)
}

// mustBeHidden checks that the file cannot be read by its key.
func (s *fixture) mustBeHidden(f ids.File) {
	s.Helper()
	if _, err := s.head(f); err == nil {
		s.Errorf("%s can be read again", f)
	}
}

// Delete gives up if the file is written again after each attempt.
func TestAFileWrittenAgainAndAgain(t *testing.T) {
	s := newFixture(t)
	s.put("file_a")
	writes := 0
	s.inject(faults.Rule{Operation: "DeleteObject", Fault: faults.Then(func() {
		if writes++; writes <= 20 {
			s.put("file_a")
		}
	})})
	if receipt, err := s.store.Delete(t.Context(), s.workspace, "file_a"); err == nil || errors.Is(err, files.ErrNotFound) {
		t.Errorf("written %d times in between: %+v, %v", writes, receipt, err)
	}
	s.inject()
	s.mustDelete("file_a", writes+1)
}

// paged lists a few versions at a time.
type paged struct {
	*s3.Client
	size int32
}

func (p paged) ListObjectVersions(ctx context.Context, in *s3.ListObjectVersionsInput, o ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error) {
	asked := *in
	asked.MaxKeys = &p.size
	return p.Client.ListObjectVersions(ctx, &asked, o...)
}

// If S3 always refuses a version, Delete removes everything else and then fails.
func TestAVersionThatIsAlwaysRefused(t *testing.T) {
	s := newFixture(t)
	s.put("file_a")
	current, err := s.head("file_a")
	kit.Must(t, err)
	kept := aws.ToString(current.VersionId)
	s.fill("file_a", "wmwmwmwm")
	refuse := faults.RefuseVersions("AccessDenied")
	client, transport := s.through(faults.Rule{Operation: "DeleteObjects", Fault: func(r *http.Request, apply faults.Apply) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(kept)) {
			return refuse(r, apply)
		}
		return apply()
	}})
	receipt, err := files.NewStore(paged{client, 2}, s.bucket.Name).Delete(t.Context(), s.workspace, "file_a")
	if err == nil || errors.Is(err, files.ErrNotFound) || receipt.Versions != 4 || s.left("file_a") != 2 {
		t.Errorf("%+v, %v, %d left; want the version refused and a marker", receipt, err, s.left("file_a"))
	}
	s.mustBeHidden("file_a")
	tried := 0
	for _, c := range transport.Calls() {
		if c.Operation == "DeleteObjects" && c.Failed {
			tried++
		}
	}
	if tried > 12 {
		t.Errorf("it deleted %d times", tried)
	}
}

// A listing whose marker does not move would be read until the request's time ends. Another
// bucket's listing, and one that is cut off, would pass for the end.
func TestEveryListingIsChecked(t *testing.T) {
	s := newFixture(t)
	const key, token = "<NextKeyMarker>k</NextKeyMarker>", "<NextContinuationToken>c</NextContinuationToken>"
	ignore := func(_ any, err error) error { return err }
	for name, c := range map[string]struct {
		list                   func(*s3.Client) error
		operation, name, again string
	}{
		"a deletion": {func(c *s3.Client) error {
			return ignore(files.NewStore(c, s.bucket.Name).Delete(t.Context(), s.workspace, "file_a"))
		}, "ListObjectVersions", "Name", strings.ReplaceAll(key, "k<", files.Key(s.workspace, "file_a")+"<") + "<NextVersionIdMarker>1</NextVersionIdMarker>"},
		"a purge": {func(c *s3.Client) error {
			return ignore(files.NewManager(c, s.bucket.Name).Purge(t.Context(), s.workspace))
		}, "ListObjectVersions", "Name", key + "<NextVersionIdMarker>1</NextVersionIdMarker>"},
		"uploads": {func(c *s3.Client) error {
			return ignore(files.NewManager(c, s.bucket.Name).Uploads(t.Context(), s.workspace))
		}, "ListMultipartUploads", "Bucket", key + "<NextUploadIdMarker>1</NextUploadIdMarker>"},
		"files": {func(c *s3.Client) error {
			return ignore(files.NewManager(c, s.bucket.Name).List(t.Context(), s.workspace))
		}, "ListObjectsV2", "Name", token},
	} {
		for answer, pages := range map[string]int{
			"<" + c.name + ">" + s.bucket.Name + "</" + c.name + "><IsTruncated>true</IsTruncated>" + c.again: 2,
			"<" + c.name + ">" + s.bucket.Name + "</" + c.name + "><IsTruncated>true</IsTruncated>":           1,
			"<" + c.name + ">another</" + c.name + "><IsTruncated>false</IsTruncated>":                        1,
		} {
			read := 0
			client, _ := s.through(faults.Rule{Operation: c.operation, Fault: func(r *http.Request, apply faults.Apply) (*http.Response, error) {
				if read++; read > 10 {
					return faults.Answer(http.StatusForbidden, "AccessDenied", "")(r, apply)
				}
				return faults.Otherwise(http.StatusOK, "<Result>"+answer+"</Result>")(r, apply)
			}})
			if err := c.list(client); err == nil || errors.Is(err, files.ErrNotFound) || read != pages {
				t.Errorf("%s, %s: %v after %d pages, want %d", name, answer, err, read, pages)
			}
		}
	}
}
