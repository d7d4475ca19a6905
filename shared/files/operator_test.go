package files_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

func (s *fixture) manager() *files.Manager { return files.NewManager(s.bucket, s.bucket.Name) }

func TestPurgeLeavesNothingOfAWorkspace(t *testing.T) {
	s := newFixture(t)
	neighbour := ids.New[ids.Workspace]()
	kit.Must(t, s.manager().Upload(t.Context(), neighbour, "file_a", strings.NewReader("x"), "text/plain"))
	s.put("file_a")
	s.put("file_a")
	s.put("file_b")
	s.mark("file_b")
	s.mark("file_c")
	if removed, err := s.manager().Purge(t.Context(), s.workspace); err != nil || removed != 3 {
		t.Errorf("purged %d versions, %v; want 3", removed, err)
	}
	if left := s.left(""); left != 0 {
		t.Errorf("%d versions and markers left", left)
	}
	if again, err := s.manager().Purge(t.Context(), s.workspace); err != nil || again != 0 {
		t.Errorf("purged again: %d, %v", again, err)
	}
	if kept, err := s.manager().List(t.Context(), neighbour); err != nil || len(kept) != 1 {
		t.Errorf("the neighbour keeps %v, %v", kept, err)
	}
}

// An upload may begin, or its parts arrive, while others are aborted.
func TestUploadsAreListedUntilNoneIsLeft(t *testing.T) {
	s := newFixture(t)
	s.bucket.Begin(t, files.Key(s.workspace, "file_a"))
	late := sync.OnceFunc(func() { s.bucket.Begin(t, files.Key(s.workspace, "file_b")) })
	client, _ := s.through(faults.Rule{Operation: "AbortMultipartUpload", Fault: faults.Then(late)})
	m := files.NewManager(client, s.bucket.Name)
	aborted, err := m.AbortUploads(t.Context(), s.workspace)
	if left, listErr := m.Uploads(t.Context(), s.workspace); aborted != 2 || len(left) > 0 || errors.Join(err, listErr) != nil {
		t.Errorf("aborted %d, left %v, %v, %v", aborted, left, err, listErr)
	}
}

// Here, a listing ends if it continues after a removed version.
func TestPurgeReadsEveryPage(t *testing.T) {
	s := newFixture(t)
	for range 5 {
		s.put("file_a")
	}
	client, _ := s.through()
	removed, err := files.NewManager(paged{client, 2}, s.bucket.Name).Purge(t.Context(), s.workspace)
	if left := s.left(""); err != nil || removed != 5 || left != 0 {
		t.Errorf("purged %d, %v, %d left; want 5", removed, err, left)
	}
}

func TestOnlyAStoredFileExists(t *testing.T) {
	s := newFixture(t)
	client, _ := s.through(faults.Rule{Operation: "PutObject", Call: 1, Fault: faults.Answer(http.StatusForbidden, "AccessDenied", "denied")})
	m := files.NewManager(client, s.bucket.Name)
	for _, exists := range []bool{false, true} {
		err := m.Upload(t.Context(), s.workspace, "file_a", strings.NewReader("x"), "text/plain")
		if err == nil || errors.Is(err, files.ErrExists) != exists {
			t.Errorf("the file exists: %t, got %v", exists, err)
		}
		s.put("file_a")
	}
}
