package engines_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/local/damage"
	"signalbox.dev/infra/local/engines"
	"signalbox.dev/infra/reach"
	"signalbox.dev/infra/testkit"
)

const patience = time.Minute

func start(t *testing.T, c engines.Config) *engines.Engines {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	running, err := engines.Start(t.Context(), c)
	testkit.Must(t, err)
	t.Cleanup(func() { stop(t, running) })
	return running
}

func stop(t *testing.T, e *engines.Engines) {
	t.Helper()
	testkit.Must(t, e.Close())
}

// The engines listen on the host, and go on after an unsigned request: a Lambda
// function opens its connections with one.
func TestHostAndUnsignedRequests(t *testing.T) {
	e := start(t, engines.Config{Host: "127.0.0.2"})
	for _, url := range []string{e.DynamoDB, e.S3, e.KMS} {
		if !strings.HasPrefix(url, "http://127.0.0.2:") {
			t.Errorf("it listens on %s", url)
		}
		answer, err := http.Get(url) //nolint:gosec // an engine of ours
		testkit.Must(t, err)
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Error(err)
		}
		_ = answer.Body.Close()
	}
	config := e.Config()
	_, tables := reach.DynamoDB(config).ListTables(t.Context(), nil)
	_, buckets := reach.S3(config).ListBuckets(t.Context(), nil)
	_, keys := reach.KMS(config).ListKeys(t.Context(), nil)
	testkit.Must(t, errors.Join(tables, buckets, keys))
}

func TestWhatCannotStartSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		config engines.Config
		want   string
	}{
		"nothing installed":  {engines.Config{Root: t.TempDir()}, "make engines"},
		"an address of none": {engines.Config{Host: "192.0.2.1"}, "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Dir = t.TempDir()
			e, err := engines.Start(t.Context(), c.config)
			if err == nil {
				stop(t, e)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q in it", err, c.want)
			}
		})
	}
}

// A database that was closed has neither a log nor its index. One that was only read
// since has a log of 0 bytes. One with an index alone has lost its log.
func TestWhatALostLogIs(t *testing.T) {
	const name, database, log, index = "extenddb.sqlite", "SQLite format 3\x00…", "-wal", "-shm"
	for _, c := range []struct {
		files map[string]string
		ok    bool
	}{
		{nil, true},
		{map[string]string{"": ""}, true}, // killed while it was made
		{map[string]string{"": database}, true},
		{map[string]string{"": database, log: "", index: "…"}, true},
		{map[string]string{"": database, log: "\x37\x7f\x06\x83…", index: "…"}, true},
		{map[string]string{"": database, log: "\x37\x7f\x06\x82…"}, true},
		{map[string]string{"": database, log: "\x37"}, false},
		{map[string]string{"": database, log: "garbage"}, false},
		{map[string]string{"": database, index: "…"}, false},
		{map[string]string{"": "garbage"}, false},
	} {
		dir := t.TempDir()
		for suffix, text := range c.files {
			testkit.Must(t, os.WriteFile(filepath.Join(dir, name+suffix), []byte(text), 0o600))
		}
		err := engines.CheckDatabase(dir)
		if _, damaged := errors.AsType[*damage.Error](err); damaged == c.ok || err != nil && !damaged {
			t.Errorf("with %q: %v", c.files, err)
		}
	}
}
