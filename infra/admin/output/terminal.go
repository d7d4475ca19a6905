package output

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// ProgressEvery is the time between two lines if there is no terminal.
const ProgressEvery = 10 * time.Second

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// WidthOf is the number of columns of a terminal; 0 if the stream is no terminal.
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

// Progress shows how far a long command is: a bar on a terminal, and a line now
// and then elsewhere. step may be called side by side.
func Progress(to io.Writer, terminal bool, now func() time.Time, total int) (step, end func()) {
	if terminal {
		bar := progressbar.NewOptions(total,
			progressbar.OptionSetWriter(to),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(100*time.Millisecond),
		)
		return func() { _ = bar.Add(1) }, // a bar that cannot be drawn stops nothing
			func() { _ = bar.Exit(); _, _ = fmt.Fprintln(to) }
	}
	var mu sync.Mutex
	done, reported := 0, now()
	step = func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		if at := now(); at.Sub(reported) >= ProgressEvery {
			reported = at
			_, _ = fmt.Fprintf(to, "%d of %d\n", done, total)
		}
	}
	return step, func() {}
}
