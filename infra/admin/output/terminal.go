package output

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// ProgressEvery is the time between two lines of Progress.
const ProgressEvery = 10 * time.Second

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// IsDiscarded reports whether a stream leads nowhere. Go opens the null device in place of a
// closed standard output.
func IsDiscarded(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	is, err := file.Stat()
	null, other := os.Stat(os.DevNull)
	return err == nil && other == nil && os.SameFile(is, null)
}

// WidthOf is the number of columns of a terminal, or 0 if the stream is not a terminal.
func WidthOf(stream any) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Progress writes the progress of a long command now and then. The function that it
// returns counts a step, and may be called concurrently.
func Progress(to io.Writer, now func() time.Time, total int) (step func()) {
	var mu sync.Mutex
	done, reported := 0, now()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		if at := now(); at.Sub(reported) >= ProgressEvery {
			reported = at
			_, _ = fmt.Fprintf(to, "%d of %d\n", done, total)
		}
	}
}
