package output

import (
	"errors"
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// ReadHidden reads a stream to its end. A terminal does not show what is typed.
func ReadHidden(stream io.Reader) (text []byte, err error) {
	if !IsTerminal(stream) {
		return io.ReadAll(stream)
	}
	for {
		line, err := term.ReadPassword(int(stream.(*os.File).Fd()))
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
		text = append(append(text, line...), '\n')
	}
}

// KeepEcho returns a function that lets a terminal show again what is typed, after an interrupted
// ReadHidden.
func KeepEcho(stream any) (restore func()) {
	if !IsTerminal(stream) {
		return func() {}
	}
	fd := int(stream.(*os.File).Fd())
	state, err := term.GetState(fd)
	return func() {
		if err == nil {
			_ = term.Restore(fd, state)
		}
	}
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
