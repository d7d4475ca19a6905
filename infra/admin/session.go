package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"golang.org/x/text/unicode/norm"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// app is the command; tests replace its fields.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	now            func() time.Time
	pause          func(context.Context, time.Duration) error
	http           aws.HTTPClient // nil means the target's own
	// terminal means that standard error is a terminal. interactive means that standard
	// input is one as well.
	terminal, interactive bool
	width                 int // see output.Writer
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	return &app{
		stdin: stdin, stdout: stdout, stderr: stderr, now: time.Now, pause: calls.Wait,
		terminal: output.IsTerminal(stderr), interactive: output.IsTerminal(stderr) && output.IsTerminal(stdin), width: output.WidthOf(stdout),
	}
}

type session struct {
	*app
	acts.Stack

	jobs        *syncjobs.Store
	jobWriter   *syncjobs.Writer
	jobLister   *syncjobs.Lister
	wrappedKeys *byok.WrappedKeys
	kms         *kms.Client
	target      *target.Target
	fileStore   *files.Store
	out         output.Writer

	who       []any     // begins each audit line
	auditFile io.Writer // also gets the audit lines; nil if there is none
	filed     int       // the number of lines that only the file has
}

func (a *app) session(t *target.Target, out output.Writer, auditFile io.Writer) *session {
	if a.http != nil {
		t.Config.HTTPClient = a.http
	}
	t.Config.APIOptions = append(t.Config.APIOptions, acts.Watch)
	db, bucket := awsclients.DynamoDB(t.Config), awsclients.S3(t.Config)
	s := &session{
		app:         a,
		jobs:        syncjobs.NewStore(db, t.Outputs.SyncJobsTableName),
		jobWriter:   syncjobs.NewWriter(db, t.Outputs.SyncJobsTableName),
		jobLister:   syncjobs.NewLister(db, t.Outputs.SyncJobsTableName),
		wrappedKeys: byok.NewWrappedKeys(db, t.Outputs.CredentialsTableName),
		kms:         awsclients.KMS(t.Config),
		target:      t,
		fileStore:   files.NewStore(bucket, t.Outputs.FilesBucketName),
		who:         []any{"user", "unknown", "target", t.Name},
		auditFile:   auditFile,
		out:         out,
	}
	s.out.Note = s.Note
	s.Stack = acts.Stack{
		Journal: s, DB: db, AccessTable: t.Outputs.AccessTableName, CredentialsTable: t.Outputs.CredentialsTableName,
		Registry: auth.NewRegistry(db, t.Outputs.AccessTableName), Credentials: byok.NewManager(db, t.Outputs.CredentialsTableName),
		Files: files.NewManager(bucket, t.Outputs.FilesBucketName), Now: a.now, Pause: a.pause,
	}
	if u, err := user.Current(); err == nil {
		s.who[1] = u.Username
	}
	if t.Identity != "" {
		s.who = append(s.who, "aws_identity", t.Identity)
	}
	return s
}

// Note writes a sentence to standard error, next to the results.
func (s *session) Note(format string, args ...any) {
	if !s.out.JSON {
		_, _ = fmt.Fprintln(s.stderr, output.OneLine(fmt.Sprintf(format, args...)))
		return
	}
	line := map[string]string{"note": fmt.Sprintf(format, args...)}
	_ = output.Writer{To: s.stderr}.Encode(line) // there is nowhere else to report it
}

// Record writes an audit line to the file and to standard error. If the file has it, a terminal
// gets one line for all at the end. Only the JSON form has the
// error, because people read it in the command's last line.
func (s *session) Record(ctx context.Context, action, outcome string, err error, attrs []any) (lost error) {
	line := slog.NewRecord(s.now(), slog.LevelInfo, "audit", 0)
	line.Add(s.who...)
	line.Add("action", action, "outcome", outcome)
	line.Add(attrs...)
	if err != nil {
		line.Add(slog.Any("error", calls.Describe(err)))
	}
	if s.auditFile != nil {
		writeErr := slog.NewJSONHandler(s.auditFile, nil).Handle(ctx, line)
		if writeErr == nil && s.terminal && !s.out.JSON {
			s.filed++
			return nil
		}
		if writeErr != nil {
			lost = fmt.Errorf("the audit line of %s (%s) could not be written: %w", action, outcome, writeErr)
		}
	}
	if s.terminal && !s.out.JSON {
		_, _ = fmt.Fprintln(s.stderr, inWords(action, outcome, slices.Concat(s.who, attrs)))
	} else {
		_ = slog.NewJSONHandler(s.stderr, nil).Handle(ctx, line)
	}
	return lost
}

// inWords returns an audit line for people: audit: key.delete done: user root, …
func inWords(action, outcome string, attrs []any) string {
	var parts []string
	for pair := range slices.Chunk(attrs, 2) {
		if value := fmt.Sprint(pair[1]); value != "" {
			parts = append(parts, strings.ReplaceAll(fmt.Sprint(pair[0]), "_", " ")+" "+output.Printable(value))
		}
	}
	return fmt.Sprintf("audit: %s %s: %s", action, outcome, strings.Join(parts, ", "))
}

// changed is the value of a change that has no other.
type changed struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// say writes the result of a change: a value for scripts, and a sentence for people. It returns the
// change's error.
func (s *session) say(err error, value any, format string, args ...any) error {
	if err != nil {
		return err
	}
	return s.out.Say(value, format, args...)
}

// sayState writes the state of a key or a credential after a change. name is for people.
func (s *session) sayState(err error, id, name, state string) error {
	if errors.Is(err, acts.ErrUnchanged) {
		return s.say(nil, changed{id, state}, "%s was %s already.", name, state)
	}
	return s.say(err, changed{id, state}, "%s is %s.", name, state)
}

// orUnchanged returns the error, or ErrUnchanged for a change that was needless.
func orUnchanged(err error, needless bool) error {
	if err == nil && needless {
		return acts.ErrUnchanged
	}
	return err
}

// changeEach changes things of a kind, and goes on after a failure. It returns the error of the only
// one; of several it warns of each failure.
func changeEach[N ~string](ctx context.Context, s *session, kind, state string, names []N, change func(context.Context, N) error) error {
	var failed error
	done := 0
	for _, name := range names {
		err := change(acts.Watched(ctx), name)
		if err == nil {
			done++
			continue
		}
		failed = err
		if len(names) > 1 {
			s.Warn(fmt.Sprintf("%s %.8s is not %s: %s", kind, name, state, acts.ErrorText(err, false)))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if failed != nil && len(names) > 1 {
		return acts.Findings(fmt.Sprintf("%d of %s %s: see the warnings", done, acts.Count(len(names), kind), state))
	}
	return failed
}

// owner names the account that a command acts for. The command finds nothing of other
// accounts.
type owner struct {
	Account ids.Account `env:"SIGNALBOX_ACCOUNT" placeholder:"ID" help:"The account. The local server has a default: its demo account."`
}

type scope struct {
	owner
	Workspace ids.Workspace `placeholder:"ID" help:"The workspace; if omitted, the account's default."`
}

// confirmation asks before something is destroyed for good.
type confirmation struct {
	Yes bool `help:"Do not ask for a confirmation. Required without a terminal."`
}

// confirm returns nil if the operator has typed the name in any spelling, or the first 8 characters
// of the id or more, or given --yes. The effect completes the sentence "This …". After an error
// nothing was done.
func (c confirmation) confirm(ctx context.Context, s *session, effect, name, id string) error {
	if c.Yes {
		return nil
	}
	if !s.interactive {
		return acts.UsageError("there is no terminal for a confirmation: repeat it with --yes; nothing was changed")
	}
	_, _ = fmt.Fprintf(s.stderr, "%s\nType its name or id to confirm: ", output.OneLine("This "+effect+"."))
	typed, err := s.line(ctx)
	typed = folded(typed)
	isName := typed != "" && typed == folded(name)
	if isID := len(typed) >= 8 && strings.HasPrefix(id, typed); err != nil || !isName && !isID {
		return acts.Refusal("not confirmed: nothing was changed")
	}
	return nil
}

// folded removes the differences between spellings of a name: composed and
// decomposed letters, upper and lower case, and kinds and numbers of blanks.
func folded(name string) string {
	return strings.Join(strings.Fields(strings.ToLower(norm.NFKC.String(name))), " ")
}

func (a *app) line(ctx context.Context) (string, error) {
	text, err := while(ctx, func() (string, error) { return bufio.NewReader(a.stdin).ReadString('\n') })
	if err != nil {
		_, _ = fmt.Fprintln(a.stderr) // ends the prompt's line
	}
	return strings.TrimSpace(text), err
}

// while returns the result of a read. It stops waiting if the context ends.
func while[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case <-ctx.Done():
		return *new(T), ctx.Err()
	case r := <-done:
		return r.value, r.err
	}
}

func named(kind, name, id string) string {
	return fmt.Sprintf("%s %q (%s)", kind, name, id)
}

func each[T, V any](rows []T, view func(T) V) []V {
	views := make([]V, len(rows))
	for i, row := range rows {
		views[i] = view(row)
	}
	return views
}

// only leaves the rows that have the value; "" leaves all rows.
func only[T any](rows []T, value string, of func(T) string) []T {
	return slices.DeleteFunc(rows, func(row T) bool { return value != "" && of(row) != value })
}
