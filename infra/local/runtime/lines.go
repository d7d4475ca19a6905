package runtime

import "bytes"

// maxLineBytes bounds the length of a line, like Lambda's bound of log events.
const maxLineBytes = 256 << 10

// lines cuts a process's output into lines.
type lines struct {
	emit func([]byte)
	rest []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		end := bytes.IndexByte(l.rest, '\n')
		if end < 0 {
			break
		}
		l.emit(l.rest[:end])
		l.rest = l.rest[end+1:]
	}
	if len(l.rest) > maxLineBytes {
		l.flush()
	}
	return len(p), nil
}

func (l *lines) flush() {
	if len(l.rest) > 0 {
		l.emit(l.rest)
		l.rest = nil
	}
}
