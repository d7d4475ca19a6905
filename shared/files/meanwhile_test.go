package files_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/shared/enginetest/faults"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// through is a client that meets these faults.
func (s *shelf) through(rules ...faults.Rule) (*s3.Client, *faults.Transport) {
	broken := faults.Wrap(s.engines.Config.HTTPClient)
	for _, rule := range rules {
		broken.Inject(rule)
	}
	config := s.engines.Config
	config.HTTPClient = broken
	return s3.NewFromConfig(config), broken
}

// amid has the shelf's store meet these faults.
func (s *shelf) amid(rules ...faults.Rule) {
	client, _ := s.through(rules...)
	s.store = files.NewStore(client, s.bucket)
}

// mustBeHidden checks that nobody can read the file who asks for it by its key.
func (s *shelf) mustBeHidden(f ids.File) {
	s.Helper()
	if _, err := s.client.HeadObject(s.Context(), &s3.HeadObjectInput{Bucket: &s.bucket, Key: aws.String(files.Key(s.workspace, f))}); err == nil {
		s.Errorf("%s can be read again", f)
	}
}

func TestAFileWrittenAgainMeanwhileGoesToo(t *testing.T) {
	s := newShelf(t, enabled)
	s.put("file_a")
	s.amid(faults.Rule{Operation: "DeleteObject", Call: 1, Fault: faults.Then(func() { s.put("file_a") })})
	s.mustDelete("file_a", 2)
}

// Delete does not race with a writer for ever.
func TestAFileWrittenAgainAndAgain(t *testing.T) {
	s := newShelf(t, enabled)
	s.put("file_a")
	writes := 0
	s.amid(faults.Rule{Operation: "DeleteObject", Fault: faults.Then(func() {
		if writes++; writes <= 20 {
			s.put("file_a")
		}
	})})
	if receipt, err := s.store.Delete(t.Context(), s.workspace, "file_a"); err == nil || errors.Is(err, files.ErrNotFound) {
		t.Errorf("written %d times meanwhile: %+v, %v", writes, receipt, err)
	}
	s.amid()
	s.mustDelete("file_a", writes+1)
}

// What another call removed is not this one's to report, and what this one
// removed is, whoever removes the rest.
func TestAnotherDeleteRemovesTheRest(t *testing.T) {
	for call, want := range map[int]error{1: files.ErrNotFound, 2: nil} {
		s := newShelf(t, enabled)
		s.put("file_a")
		s.hide("file_a")
		other, refuse := s.store, faults.RefuseVersions("InternalError")
		s.amid(faults.Rule{Operation: "DeleteObjects", Call: call, Fault: func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
			if _, err := other.Delete(t.Context(), s.workspace, "file_a"); err != nil {
				t.Error(err)
			}
			return refuse(r, apply)
		}})
		if receipt, err := s.store.Delete(t.Context(), s.workspace, "file_a"); !errors.Is(err, want) || receipt.Versions != call-1 {
			t.Errorf("before step %d: %+v, %v; want %v", call, receipt, err, want)
		}
	}
}

// paged lists two versions at a time.
type paged struct{ *s3.Client }

func (p paged) ListObjectVersions(ctx context.Context, in *s3.ListObjectVersionsInput, o ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error) {
	page := *in
	page.MaxKeys = aws.Int32(2)
	return p.Client.ListObjectVersions(ctx, &page, o...)
}

// All pages of the file are read before its markers go, and no page of another.
func TestDeleteReadsThePagesOfItsFileAlone(t *testing.T) {
	s := newShelf(t, enabled)
	for _, f := range []ids.File{"file_0", "file_1", "file_10", "file_11"} {
		s.put(f)
		s.put(f)
	}
	client, broken := s.through(faults.Rule{Operation: "DeleteObjects", Fault: faults.Then(func() { s.mustBeHidden("file_1") })})
	s.store = files.NewStore(paged{client}, s.bucket)
	s.mustDelete("file_1", 2)
	for _, c := range broken.Calls() {
		if from := c.Query.Get("key-marker"); from != "" && from != files.Key(s.workspace, "file_1") {
			t.Errorf("it goes on to list what follows %s", from)
		}
	}
}

// Whatever it does not show may be there.
func TestAListingThatGoesOnNowhereIsNotTheEnd(t *testing.T) {
	s := newShelf(t, enabled)
	s.put("file_a")
	s.amid(faults.Rule{Operation: "ListObjectVersions", Call: 1, Fault: faults.Otherwise(http.StatusOK, nowhere(s.bucket))})
	if receipt, err := s.store.Delete(t.Context(), s.workspace, "file_a"); err == nil {
		t.Errorf("deleted: %+v", receipt)
	}
	s.mustDelete("file_a", 1)
}

// What S3 would not delete stays behind its marker until it is tried again.
func TestARefusedVersionDoesNotComeToLight(t *testing.T) {
	s := newShelf(t, enabled)
	s.put("file_a")
	s.amid(
		faults.Rule{Operation: "DeleteObjects", Call: 1, Fault: faults.RefuseVersions("InternalError")},
		faults.Rule{Operation: "ListObjectVersions", Call: 2, Fault: faults.Then(func() { s.mustBeHidden("file_a") })},
	)
	s.mustDelete("file_a", 1)
}

// S3 says either where nothing is there to be deleted on condition.
func TestBothAnswersForAnAbsentFileAreNotFound(t *testing.T) {
	for status, code := range map[int]string{http.StatusNotFound: "NoSuchKey", http.StatusPreconditionFailed: "PreconditionFailed"} {
		s := newShelf(t, off)
		s.amid(faults.Rule{Operation: "DeleteObject", Fault: faults.Answer(status, code, "as a test has it")})
		s.mustNotFind("file_a")
	}
}
