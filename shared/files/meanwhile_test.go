package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

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

func TestAFileWrittenAgainMeanwhileGoesToo(t *testing.T) {
	s := newFixture(t, enabled)
	s.put("file_a")
	s.inject(faults.Rule{Operation: "DeleteObject", Call: 1, Fault: faults.Then(func() { s.put("file_a") })})
	s.mustDelete("file_a", 2)
}

// Delete does not race with a writer for ever.
func TestAFileWrittenAgainAndAgain(t *testing.T) {
	s := newFixture(t, enabled)
	s.put("file_a")
	writes := 0
	s.inject(faults.Rule{Operation: "DeleteObject", Fault: faults.Then(func() {
		if writes++; writes <= 20 {
			s.put("file_a")
		}
	})})
	if receipt, err := s.store.Delete(t.Context(), s.workspace, "file_a"); err == nil || errors.Is(err, files.ErrNotFound) {
		t.Errorf("written %d times meanwhile: %+v, %v", writes, receipt, err)
	}
	s.inject()
	s.mustDelete("file_a", writes+1)
}

// A Delete reports what it removed itself, whatever another one removed.
func TestAnotherDeleteRemovesTheRest(t *testing.T) {
	for _, c := range []struct {
		history        string
		call, versions int
		want           error
	}{
		{"wm", 1, 0, files.ErrNotFound}, {"wm", 2, 1, nil},
		{"w", 1, 0, nil}, // it was the one that hid the file
	} {
		s := newFixture(t, enabled)
		s.fill("file_a", c.history)
		other, refuse := s.store, faults.RefuseVersions("InternalError")
		s.inject(faults.Rule{Operation: "DeleteObjects", Call: c.call, Fault: func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
			if _, err := other.Delete(t.Context(), s.workspace, "file_a"); err != nil {
				t.Error(err)
			}
			return refuse(r, apply)
		}})
		if receipt, err := s.store.Delete(t.Context(), s.workspace, "file_a"); !errors.Is(err, c.want) || receipt.Versions != c.versions {
			t.Errorf("%s, before step %d: %+v, %v; want %v", c.history, c.call, receipt, err, c.want)
		}
	}
}

// paged lists a few versions at a time; where alone, first the newest marker by
// itself.
type paged struct {
	*s3.Client
	size  int32
	alone bool
}

func (p paged) ListObjectVersions(ctx context.Context, in *s3.ListObjectVersionsInput, o ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error) {
	asked := *in
	asked.MaxKeys = &p.size
	page, err := p.Client.ListObjectVersions(ctx, &asked, o...)
	if err == nil && p.alone && in.KeyMarker == nil && len(page.DeleteMarkers) > 0 && aws.ToBool(page.DeleteMarkers[0].IsLatest) {
		newest := page.DeleteMarkers[:1]
		page.Versions, page.DeleteMarkers, page.IsTruncated = nil, newest, aws.Bool(true)
		page.NextKeyMarker, page.NextVersionIdMarker = newest[0].Key, newest[0].VersionId
	}
	return page, err
}

// The newest marker stays until no version is left, and no page of another file
// is read.
func TestDeleteReadsThePagesOfItsFileAlone(t *testing.T) {
	s := newFixture(t, enabled)
	for _, f := range []ids.File{"file_0", "file_1", "file_10", "file_11"} {
		s.put(f)
		s.put(f)
	}
	client, transport := s.through(faults.Rule{Operation: "DeleteObjects", Fault: faults.Then(func() { s.mustBeHidden("file_1") })})
	s.store = files.NewStore(paged{client, 2, false}, s.bucket.Name)
	s.mustDelete("file_1", 2)
	for _, c := range transport.Calls() {
		if from := c.Query.Get("key-marker"); from != "" && from != files.Key(s.workspace, "file_1") {
			t.Errorf("it lists what follows %s", from)
		}
	}
}

// However many versions there are and however little time a call has, each call
// leaves fewer, and one finishes.
func TestDeleteFinishesByRepeating(t *testing.T) {
	for _, c := range []struct {
		name  string
		fill  string
		page  int32
		calls int
		alone bool
	}{
		{"many versions", "wwwwwwwwwwww", 3, 6, false},
		{"many markers before them", "wwwmmmmmmmmmm", 3, 6, false},
		{"versions and markers in turn", "wmwmwmwmwmwmwm", 3, 6, false},
		{"a marker at first", "wwmwwmwwm", 2, 7, true},
		{"many at a time", "wmwmwmwmwmwmww", 5, 6, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t, enabled)
			s.fill("file_1", c.fill)
			s.put("file_10")
			written, removed, left := strings.Count(c.fill, "w"), 0, s.left("file_1")+1 // the marker of the first call
			for repeat := 0; ; repeat++ {
				receipt, err := s.within(c.calls, func(client *s3.Client) paged { return paged{client, c.page, c.alone} })
				removed += receipt.Versions
				now := s.left("file_1")
				if err == nil {
					if now != 0 || removed != written || repeat == 0 {
						t.Errorf("done at repeat %d: %d left, %d of %d versions removed", repeat, now, removed, written)
					}
					return
				}
				s.mustBeHidden("file_1")
				if errors.Is(err, files.ErrNotFound) || now >= left {
					t.Fatalf("repeat %d: %d of %d left, %v", repeat, now, left, err)
				}
				left = now
			}
		})
	}
}

// within deletes file_1 with a context that ends after that many calls to S3.
func (s *fixture) within(calls int, listed func(*s3.Client) paged) (files.Receipt, error) {
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	client, _ := s.through(faults.Rule{Fault: func(_ *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
		if calls--; calls < 0 {
			cancel()
			return nil, ctx.Err()
		}
		return apply()
	}})
	return files.NewStore(listed(client), s.bucket.Name).Delete(ctx, s.workspace, "file_1")
}

func TestAFailedCallEndsADelete(t *testing.T) {
	for _, history := range []string{"", "w"} {
		s := newFixture(t, enabled)
		s.fill("file_a", history)
		for operation, fault := range map[string]faults.Fault{
			"ListObjectVersions": faults.Otherwise(http.StatusOK, truncated(s.bucket.Name)), "DeleteObjects": faults.Answer(http.StatusForbidden, "AccessDenied", "no"),
		} {
			if operation == "DeleteObjects" && history == "" {
				continue // there is nothing to delete
			}
			s.inject(faults.Rule{Operation: operation, Call: 1, Fault: fault})
			if receipt, err := s.store.Delete(t.Context(), s.workspace, "file_a"); err == nil || errors.Is(err, files.ErrNotFound) {
				t.Errorf("%d versions, %s: %+v, %v", len(history), operation, receipt, err)
			}
		}
	}
}

// S3 may refuse more than once, with progress between.
func TestRefusalsAreRetriedAfterProgress(t *testing.T) {
	s := newFixture(t, enabled)
	var rules []faults.Rule
	for call := range 3 {
		s.put("file_a")
		rules = append(rules, faults.Rule{Operation: "DeleteObjects", Call: 2*call + 1, Fault: faults.RefuseVersions("SlowDown")})
	}
	client, _ := s.through(rules...)
	s.store = files.NewStore(paged{client, 2, false}, s.bucket.Name)
	s.mustDelete("file_a", 3)
}

// A busy S3 refuses single versions in a response of status 200. They are deleted after
// pauses, within the request's time.
func TestABusyBucketIsAskedAgain(t *testing.T) {
	const requestTime = 9500 * time.Millisecond
	for _, busy := range []time.Duration{2 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			began, asked := time.Now(), 0
			left := []string{"Version", "DeleteMarker"}
			workspace := ids.New[ids.Workspace]()
			remove := func(r *http.Request, apply faults.Apply) (*http.Response, error) {
				if asked++; asked > 100 {
					t.Fatal("it asks without a pause")
				}
				if time.Since(began) < busy {
					return faults.RefuseVersions("SlowDown")(r, apply)
				}
				left = left[1:]
				return faults.Pretend(http.StatusOK, "<DeleteResult><Deleted/></DeleteResult>")(r, apply)
			}
			list := func(r *http.Request, apply faults.Apply) (*http.Response, error) {
				listed := "<ListVersionsResult><Name>b</Name>"
				for _, kind := range left {
					listed += fmt.Sprintf("<%s><Key>%s</Key><VersionId>1</VersionId></%[1]s>", kind, files.Key(workspace, "file_a"))
				}
				return faults.Pretend(http.StatusOK, listed+"</ListVersionsResult>")(r, apply)
			}
			transport := faults.Wrap(nil)
			for operation, fault := range map[string]faults.Fault{
				"DeleteObject": faults.Pretend(http.StatusNoContent, ""), "DeleteObjects": remove, "ListObjectVersions": list,
			} {
				transport.Inject(faults.Rule{Operation: operation, Fault: fault})
			}
			ctx, cancel := context.WithTimeout(t.Context(), requestTime)
			defer cancel()
			receipt, err := files.NewStore(s3.NewFromConfig(aws.Config{
				Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
				HTTPClient: transport, Retryer: calls.Retryer, APIOptions: []func(*middleware.Stack) error{calls.Whole},
			}), "b").Delete(ctx, workspace, "file_a")
			if busy < requestTime && (err != nil || receipt.Versions != 1 || len(left) != 0) {
				t.Errorf("busy for %v: %+v, %v", busy, receipt, err)
			}
			if took := time.Since(began); busy > requestTime && (err == nil || errors.Is(err, files.ErrNotFound) || took > requestTime) {
				t.Errorf("busy for %v: %+v, %v after %v", busy, receipt, err, took)
			}
		})
	}
}

// A version that S3 always refuses ends a Delete, after everything else was removed.
func TestAVersionThatIsAlwaysRefused(t *testing.T) {
	s := newFixture(t, enabled)
	s.put("file_a")
	current, err := s.head("file_a")
	testkit.Must(t, err)
	kept := aws.ToString(current.VersionId)
	s.fill("file_a", "wmwmwmwm")
	refuse := faults.RefuseVersions("AccessDenied")
	client, transport := s.through(faults.Rule{Operation: "DeleteObjects", Fault: func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
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
	receipt, err := files.NewStore(paged{client, 2, false}, s.bucket.Name).Delete(t.Context(), s.workspace, "file_a")
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

// S3 may respond with either to a conditional delete of an absent object.
func TestBothAnswersForAnAbsentFileAreNotFound(t *testing.T) {
	for status, code := range map[int]string{http.StatusNotFound: "NoSuchKey", http.StatusPreconditionFailed: "PreconditionFailed"} {
		s := newFixture(t, off)
		s.inject(faults.Rule{Operation: "DeleteObject", Fault: faults.Answer(status, code, "as a test has it")})
		s.mustNotFind("file_a")
	}
}
