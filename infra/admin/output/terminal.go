package output

import (
	"os"
	"os/exec"

	"golang.org/x/term"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// HideInput makes a terminal hide its input, until restore is called. stty can do that on every
// system.
func HideInput(stream any) (restore func()) {
	if !IsTerminal(stream) {
		return func() {}
	}
	file, _ := stream.(*os.File) // IsTerminal has seen it
	state, err := term.GetState(int(file.Fd()))
	hide := exec.Command("stty", "-echo")
	if hide.Stdin = file; err != nil || hide.Run() != nil {
		return func() {}
	}
	return func() { _ = term.Restore(int(file.Fd()), state) }
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
