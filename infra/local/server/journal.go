package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// journal writes the logs: a file for each function, as there is a log group for
// each in the cloud, and one for the local server itself.
type journal struct {
	// log writes to server.log.
	log      *slog.Logger
	terminal *terminal
	dir      string
}

func newJournal(dir string, shown io.Writer) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of logs: %w", err)
	}
	j := &journal{terminal: &terminal{to: shown}, dir: dir}
	file := j.file("server")
	if _, err := file.Write(nil); err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	// An error is shown at once, with the log to read.
	text := slog.NewTextHandler(j.terminal, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: shortTime})
	j.log = slog.New(slog.NewMultiHandler(slog.NewJSONHandler(file, nil), text.WithAttrs([]slog.Attr{slog.String("log", string(file))})))
	return j, nil
}

// terminal writes one line at a time.
type terminal struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (t *terminal) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.to.Write(line)
}

// logFile is the path of a file to which each write is appended.
type logFile string

// Write implements io.Writer.
func (f logFile) Write(line []byte) (int, error) {
	file, err := os.OpenFile(string(f), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := file.Write(line)
	return n, errors.Join(err, file.Close())
}

func shortTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.String(a.Key, a.Value.Time().Format(time.TimeOnly))
	}
	return a
}

func (j *journal) file(name string) logFile { return logFile(filepath.Join(j.dir, name+".log")) }

// line writes a line of a function. A log that cannot be written does not stop a
// request.
func (j *journal) line(function string, line []byte) {
	file := j.file(function)
	_, _ = file.Write(append(line[:len(line):len(line)], '\n'))
	_, _ = io.WriteString(j.terminal, readable(function, line, string(file)))
}

// readable formats a request's line for the terminal, and names the log if the request
// failed. Its audit is left out; other lines are unchanged.
func readable(function string, line []byte, log string) string {
	var r struct {
		Time      time.Time `json:"timestamp"`
		Message   string    `json:"message"`
		Operation string    `json:"operation"`
		Status    int       `json:"status"`
		Duration  float64   `json:"duration_ms"`
		Reason    string    `json:"reason"`
	}
	switch err := json.Unmarshal(line, &r); {
	case err == nil && r.Message == "audit":
		return ""
	case err != nil || r.Message != "request":
		return function + ": " + string(line) + "\n"
	}
	if r.Status >= http.StatusInternalServerError {
		r.Reason = "see " + log
	}
	text := fmt.Sprintf("%s %s %d %.1f ms %s", r.Time.Local().Format(time.TimeOnly), r.Operation, r.Status, r.Duration, r.Reason)
	return strings.TrimSpace(text) + "\n"
}
