package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressEvery is how often a line is written where there is no terminal.
const progressEvery = 10 * time.Second

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// widthOf is the number of columns of a terminal; 0 where there is none.
func widthOf(stream any) int {
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

// progress shows on standard error how far a long command is: a bar on a
// terminal, and a line now and then elsewhere. step may be called side by side.
func (s *session) progress(total int) (step, end func()) {
	if s.terminal {
		bar := progressbar.NewOptions(total,
			progressbar.OptionSetWriter(s.stderr),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(100*time.Millisecond),
		)
		return func() { _ = bar.Add(1) }, // a bar that cannot be drawn stops nothing
			func() { _ = bar.Exit(); _, _ = fmt.Fprintln(s.stderr) }
	}
	var mu sync.Mutex
	done, reported := 0, s.now()
	step = func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		if now := s.now(); now.Sub(reported) >= progressEvery {
			reported = now
			_, _ = fmt.Fprintf(s.stderr, "%d of %d\n", done, total)
		}
	}
	return step, func() {}
}
