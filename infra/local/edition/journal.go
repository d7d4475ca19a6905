package edition

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

// editionLog is the name of the edition's own log.
const editionLog = "edition"

// journal writes the logs: a file for each function, as there is a log group for
// each in the cloud, and one for the edition itself.
type journal struct {
	// log writes to edition.log.
	log      *slog.Logger
	terminal io.Writer
	dir      string

	mu    sync.Mutex
	files map[string]*os.File
}

func newJournal(dir string, terminal io.Writer) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of logs: %w", err)
	}
	j := &journal{terminal: terminal, dir: dir, files: make(map[string]*os.File)}
	file, err := j.file(editionLog)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	var handler slog.Handler = slog.NewJSONHandler(file, nil)
	if terminal != nil {
		// An error is shown at once, with the log to read.
		shown := slog.NewTextHandler(locked{j}, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: shortTime})
		handler = slog.NewMultiHandler(handler, shown.WithAttrs([]slog.Attr{slog.String("log", j.path(editionLog))}))
	}
	j.log = slog.New(handler)
	return j, nil
}

// locked writes to the terminal, one line at a time.
type locked struct{ *journal }

// Write implements io.Writer.
func (l locked) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.terminal.Write(line)
}

func shortTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.String(a.Key, a.Value.Time().Format(time.TimeOnly))
	}
	return a
}

func (j *journal) path(name string) string { return filepath.Join(j.dir, name+".log") }

func (j *journal) file(name string) (*os.File, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if file, ok := j.files[name]; ok {
		return file, nil
	}
	file, err := os.OpenFile(j.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		j.files[name] = file
	}
	return file, err
}

// line writes a line of a function. A log that cannot be written does not stop a
// request.
func (j *journal) line(function string, line []byte) {
	if file, err := j.file(function); err == nil {
		_, _ = file.Write(append(line[:len(line):len(line)], '\n'))
	}
	if j.terminal != nil {
		_, _ = io.WriteString(locked{j}, readable(function, line, j.path(function)))
	}
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

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var problems []error
	for _, file := range j.files {
		problems = append(problems, file.Close())
	}
	return errors.Join(problems...)
}
