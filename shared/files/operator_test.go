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

// The listing has several pages. Here it ends if it continues after a removed version.
func TestPurgeLeavesNothingOfAWorkspace(t *testing.T) {
	s := newFixture(t)
	neighbour := ids.New[ids.Workspace]()
	client, _ := s.through()
	m := files.NewManager(paged{client, 2}, s.bucket.Name)
	kit.Must(t, m.Upload(t.Context(), neighbour, "file_a", strings.NewReader("x"), "text/plain"))
	s.fill("file_a", "wwwww")
	s.fill("file_b", "wm")
	s.mark("file_c")
	if removed, err := m.Purge(t.Context(), s.workspace); err != nil || removed != 6 {
		t.Errorf("purged %d versions, %v; want 6", removed, err)
	}
	if left := s.left(""); left != 0 {
		t.Errorf("%d versions and markers left", left)
	}
	if again, err := m.Purge(t.Context(), s.workspace); err != nil || again != 0 {
		t.Errorf("purged again: %d, %v", again, err)
	}
	if kept, err := m.List(t.Context(), neighbour); err != nil || len(kept) != 1 {
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
