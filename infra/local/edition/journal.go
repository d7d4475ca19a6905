package edition

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
)

// logMegabytes bounds a log file; one older one is kept beside it.
const logMegabytes = 64

// journal writes the logs: a file for each function, as there is a log group for
// each in the cloud, and one for the edition itself.
type journal struct {
	// log writes to edition.log.
	log      *slog.Logger
	terminal io.Writer
	dir      string

	mu    sync.Mutex
	files map[string]*lumberjack.Logger
}

func newJournal(dir string, terminal io.Writer) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of logs: %w", err)
	}
	j := &journal{terminal: terminal, dir: dir, files: make(map[string]*lumberjack.Logger)}
	j.log = slog.New(slog.NewJSONHandler(j.file("edition"), nil))
	return j, nil
}

func (j *journal) file(name string) *lumberjack.Logger {
	j.mu.Lock()
	defer j.mu.Unlock()
	file, ok := j.files[name]
	if !ok {
		file = &lumberjack.Logger{Filename: filepath.Join(j.dir, name+".log"), MaxSize: logMegabytes, MaxBackups: 1}
		j.files[name] = file
	}
	return file
}

// line writes a line of a function. A log that cannot be written does not stop a
// request.
func (j *journal) line(function string, line []byte) {
	_, _ = j.file(function).Write(append(line[:len(line):len(line)], '\n'))
	if j.terminal != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		_, _ = io.WriteString(j.terminal, readable(function, line))
	}
}

// readable formats a request's line for the terminal. Its audit is left out; other
// lines are unchanged.
func readable(function string, line []byte) string {
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
	return fmt.Sprintf("%s  %-14s %d  %.1f ms  %s\n", r.Time.Local().Format(time.TimeOnly), r.Operation, r.Status, r.Duration, r.Reason)
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
