package files_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/shared/enginetest/faults"
	"signalbox.dev/shared/files"
)

// amid has the shelf's store meet this fault.
func (s *shelf) amid(rules ...faults.Rule) {
	broken := faults.Wrap(s.engines.Config.HTTPClient)
	for _, rule := range rules {
		broken.Inject(rule)
	}
	config := s.engines.Config
	config.HTTPClient = broken
	s.store = files.NewStore(s3.NewFromConfig(config), s.bucket)
}

func TestAFileWrittenAgainMeanwhileGoesToo(t *testing.T) {
	s := newShelf(t, enabled)
	s.put("file_a")
	s.amid(faults.Rule{Operation: "DeleteObject", Call: 1, Fault: faults.Then(func() { s.put("file_a") })})
	s.mustDelete("file_a", 2)
}

// What S3 would not delete stays behind its marker until it is tried again.
func TestARefusedVersionDoesNotComeToLight(t *testing.T) {
	s := newShelf(t, enabled)
	s.put("file_a")
	readable := func() {
		if _, err := s.client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &s.bucket, Key: aws.String(files.Key(s.workspace, "file_a"))}); err == nil {
			t.Error("it can be read again")
		}
	}
	s.amid(
		faults.Rule{Operation: "DeleteObjects", Call: 1, Fault: faults.RefuseVersions("InternalError")},
		faults.Rule{Operation: "ListObjectVersions", Call: 2, Fault: faults.Then(readable)},
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
