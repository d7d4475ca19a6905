package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/ids"
)

// fixture is an account and its operator.
type fixture struct {
	*testing.T
	engines kit.Engines
	bucket  string
	// sealing is the key that new credentials are sealed under. Empty means the
	// stack's own. next is the key that a rewrap moves to.
	sealing, next string
	dir           string     // the state folder of the local server
	change        func(*app) // changes every command from now on; may be nil
	account       ids.Account
	// workspace is the account's default.
	workspace ids.Workspace
}

type answer struct {
	code           int
	stdout, stderr string
}

// newFixture returns a fixture on a model of AWS of its own.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	engines, _ := kit.OnModel("Enabled")
	return fixtureOn(t, engines, engines.Tables.Files)
}

// newOnEngines returns a fixture on real engines. With tables it has an access and a credentials
// table that no other test sees.
func newOnEngines(t *testing.T, tables ...string) *fixture {
	t.Helper()
	engines := kit.Start(t)
	if len(tables) > 0 {
		engines.Tables.Access, engines.Tables.Credentials = tables[0], tables[1]
	}
	return fixtureOn(t, engines, engines.Bucket(t, types.BucketVersioningStatusEnabled))
}

func fixtureOn(t *testing.T, engines kit.Engines, bucket string) *fixture {
	t.Helper()
	kit.Must(t, os.Unsetenv("SIGNALBOX_ACCOUNT")) // the developer's
	d := &fixture{T: t, engines: engines, dir: t.TempDir(), bucket: bucket}
	d.writeStack()
	var made accountView
	d.json(&made, "account", "create", "Acme")
	d.account, d.workspace = made.ID, ids.Workspace(made.Workspace)
	d.write("demo.json", map[string]any{"account_id": made.ID}) // the default of --account
	return d
}

func (d *fixture) write(name string, content any) {
	d.Helper()
	text, err := json.Marshal(content)
	kit.Must(d, err)
	kit.Must(d, os.WriteFile(filepath.Join(d.dir, name), text, 0o600))
}

func (d *fixture) writeStack() {
	d.Helper()
	d.write("stack.json", awsclients.Stack[target.Outputs]{Engines: d.reached(), Outputs: d.outputs()})
}

func (d *fixture) outputs() target.Outputs {
	return target.Outputs{
		AccessTableName: d.engines.Tables.Access, CredentialsTableName: d.engines.Tables.Credentials,
		SyncJobsTableName: d.engines.Tables.Jobs, FilesBucketName: d.bucket,
		SealingKeyArn: cmp.Or(d.sealing, d.engines.Tables.SealingKey), OwnSealingKeyArn: d.engines.Tables.SealingKey,
	}
}

func (d *fixture) table(name string) kit.Rows {
	return kit.Rows{DB: dynamodb.NewFromConfig(d.engines.Config), Table: name}
}

func (d *fixture) reached() awsclients.Engines {
	return d.engines.Config.ConfigSources[0].(awsclients.Engines)
}

func (d *fixture) do(args ...string) answer { return d.feed("", args...) }

func (d *fixture) feed(stdin string, args ...string) answer {
	return d.run(d.Context(), strings.NewReader(stdin), args...)
}

func (d *fixture) run(ctx context.Context, stdin io.Reader, args ...string) answer {
	var stdout, stderr bytes.Buffer
	a := newApp(stdin, &stdout, &stderr)
	a.http = d.engines.Config.HTTPClient
	if d.change != nil {
		d.change(a)
	}
	code := runWith(ctx, a, append([]string{"--local", d.dir}, args...))
	return answer{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// parsers are used again, because to make one takes longer than the rest of a command.
var parsers = sync.Pool{New: func() any { return newParser() }}

// runWith executes a command line with a parser that may have read others.
func runWith(ctx context.Context, a *app, args []string) int {
	p := parsers.Get().(*parser)
	defer parsers.Put(p)
	fresh(p)
	return a.run(ctx, p, args)
}

// fresh makes a parser forget the command line that it has read.
func fresh(p *parser) {
	_ = kong.Visit(p.Model, func(n kong.Visitable, next kong.Next) error {
		switch n := n.(type) {
		case *kong.Flag:
			n.Set, n.Active = false, false
		case *kong.Value:
			n.Set, n.Active = false, false
		case *kong.Node:
			n.Active = false
		}
		return next(nil)
	})
}

func (d *fixture) must(args ...string) string {
	d.Helper()
	got := d.do(args...)
	if got.code != acts.Done {
		d.Fatalf("admin %s: exit code %d\n%s", strings.Join(args, " "), got.code, got.stderr)
	}
	return strings.TrimSuffix(got.stdout, "\n")
}

func (d *fixture) json(into any, args ...string) {
	d.Helper()
	printed := d.must(append([]string{"--json"}, args...)...)
	if err := json.Unmarshal([]byte(printed), into); err != nil {
		d.Fatalf("admin %s: %v in %s", strings.Join(args, " "), err, printed)
	}
}

// on executes a command line without adding --local.
func on(t *testing.T, args ...string) answer {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := runWith(t.Context(), newApp(strings.NewReader(""), &stdout, &stderr), args)
	return answer{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

func (d *fixture) want(code int, args ...string) answer {
	d.Helper()
	got := d.do(args...)
	if got.code != code {
		d.Errorf("admin %s: exit code %d, want %d\n%s", strings.Join(args, " "), got.code, code, got.stderr)
	}
	return got
}

func (a answer) audits() (lines []map[string]any) {
	for line := range strings.Lines(a.stderr) {
		var read map[string]any
		if json.Unmarshal([]byte(line), &read) == nil && read[slog.MessageKey] == "audit" {
			lines = append(lines, read)
		}
	}
	return lines
}

// broken makes the command send its requests through faults.
func (d *fixture) broken() *faults.Transport {
	transport := faults.Wrap(d.engines.Config.HTTPClient)
	d.change = func(a *app) { a.http = transport }
	return transport
}

// stopped stops the clock of all later commands. Only their own pauses move it.
func (d *fixture) stopped(now time.Time, during func(time.Duration) error) {
	d.change = func(a *app) {
		a.now = func() time.Time { return now }
		a.pause = func(_ context.Context, wait time.Duration) error {
			now = now.Add(wait)
			return during(wait)
		}
	}
}
