package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/test/cases"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
)

// shipped runs command lines of the operator in an environment, as the program does: it parses, asks,
// acts, writes and exits. A line is parsed once, because that takes longer than all the rest.
type shipped struct {
	folder    string
	described string // what the description in the folder says
	parsed    map[string]parsedLine
}

type parsedLine struct {
	*parser
	command *kong.Context
}

// commandLine makes the operation of a command line. Its result is the exit code, and shows an answer.
func (s *shipped) commandLine(env *cases.Environment, line string) cases.Operation {
	s.describe(env)
	args := append([]string{"--local", s.folder}, strings.Fields(line)...)
	words := strings.Fields(line)
	return cases.Operation{
		Name: words[0] + " " + words[1], Failed: "1 or 5", Unconditional: true, Limit: time.Minute,
		FaultOutcomes: func(c cases.Call, f *cases.Fault, always bool, alone string) []string {
			if f.Unconfirmed { // it deletes a batch once, and the operator repeats it
				return []string{"1"}
			}
			if f.Recovers && (!always || f.Usable) {
				return []string{alone}
			}
			return []string{"1", "5"} // the judge knows which
		},
		Run: func(ctx context.Context, client aws.HTTPClient) cases.Result {
			var stdout, stderr bytes.Buffer
			a := newApp(strings.NewReader(""), &stdout, &stderr)
			a.http, a.now, a.pause = client, env.Now, env.Pause
			p, ctx := s.parse(a, line, args), acts.Watched(ctx)
			code := a.report(ctx, a.carryOut(ctx, &p.given, p.command), args)
			return cases.Result{Text: strconv.Itoa(code), Shown: answer{code, stdout.String(), stderr.String()}}
		},
	}
}

func (s *shipped) parse(a *app, line string, args []string) parsedLine {
	if _, known := s.parsed[line]; !known {
		p := parsedLine{parser: newParser()}
		p.command, _ = a.parse(p.parser, args) // carryOut fails without one
		s.parsed[line] = p
	}
	return s.parsed[line]
}

// describe writes the stack's description.
func (s *shipped) describe(env *cases.Environment) {
	o := env.Outputs
	text, err := json.Marshal(awsclients.Stack[target.Outputs]{Engines: env.Engines(), Outputs: target.Outputs{
		AccessTableName: o.Access, CredentialsTableName: o.Credentials, SyncJobsTableName: o.Jobs, FilesBucketName: o.Files,
		SealingKeyArn: o.SealingKey, OwnSealingKeyArn: env.OldKey,
	}})
	kit.Must(env.TB(), err)
	if s.described != string(text) {
		s.described = string(text)
		kit.Must(env.TB(), os.WriteFile(filepath.Join(s.folder, "stack.json"), text, 0o600))
	}
}

// tenancy is an account with keys and two workspaces, and a stranger's key.
type tenancy struct {
	*cases.Environment
	*shipped

	account  ids.Account
	hasFiles bool                   // and so a snapshot reads the bucket
	second   ids.Workspace          // not the default
	keys     map[string]ids.KeyHash // by name; "marked" is bound and suspended
	before   *snapshot              // what was stored before the operation
}

func (d *tenancy) fill() {
	t, own := d.TB(), d.Tenant
	d.account, d.second, d.keys = own.ID, own.NewWorkspace(t), map[string]ids.KeyHash{"plain": auth.HashKey(own.Management)}
	d.keys["listed"] = auth.HashKey(own.StandardKey(t, ""))
	d.keys["bound"] = auth.HashKey(own.StandardKey(t, d.second))
	d.keys["marked"] = auth.HashKey(own.StandardKey(t, d.second))
	d.keys["off"] = auth.HashKey(own.DisabledKey(t))
	d.keys["stranger's"] = auth.HashKey(d.Stranger().Management)
	kit.Must(t, d.Registry.SuspendKey(t.Context(), d.account, d.keys["marked"], true))
}

// snapshot is all that is stored.
type snapshot struct {
	*auth.Survey

	rows   storedRows
	in     map[ids.Workspace]string // what a workspace has
	letIn  string                   // the names of the keys that a request is let in with
	listed map[ids.KeyHash]int      // the number of allow-lists with a key
}

// storedRows answer reads of the access table.
type storedRows []kit.Row

// Scan implements dynamodb.ScanAPIClient.
func (r storedRows) Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return &dynamodb.ScanOutput{Items: r}, nil
}

// GetItem reads a row.
func (r storedRows) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	for _, row := range r {
		if kit.TextOf(row, "pk") == kit.TextOf(in.Key, "pk") && kit.TextOf(row, "sk") == kit.TextOf(in.Key, "sk") {
			return &dynamodb.GetItemOutput{Item: row}, nil
		}
	}
	return &dynamodb.GetItemOutput{}, nil
}

func (d *tenancy) snapshot() *snapshot {
	t, ctx := d.TB(), d.TB().Context()
	l := &snapshot{rows: d.Rows(d.Outputs.Access).All(t), in: map[ids.Workspace]string{}, listed: map[ids.KeyHash]int{}}
	var err error
	l.Survey, err = auth.ReadSurvey(ctx, l.rows, "")
	kit.Must(t, err)
	stored := map[ids.Workspace]int{}
	for _, row := range d.Rows(d.Outputs.Credentials).All(t) {
		if strings.HasPrefix(kit.TextOf(row, "sk"), "credential#") {
			list, err := json.Marshal(row["allowed_api_key_hashes"])
			kit.Must(t, err)
			stored[ids.Workspace(kit.TextOf(row, "workspace"))]++
			for _, hash := range d.keys { // also deleted ones
				l.listed[hash] += strings.Count(string(list), `"`+string(hash)+`"`)
			}
		}
	}
	both := []ids.Workspace{d.Tenant.Workspace, d.second}
	if !d.hasFiles {
		both = nil
	}
	for _, w := range both {
		uploads, err := d.Files.Uploads(ctx, w)
		kit.Must(t, err)
		l.in[w] = fmt.Sprintf("%d credentials, %d versions, %d uploads", stored[w], d.Bucket().Look(t, files.Key(w, "")).Siblings, len(uploads))
	}
	names := map[ids.KeyHash]string{}
	for name, hash := range d.keys {
		names[hash] = name
	}
	var in []string
	for hash := range l.Keys {
		if _, err := auth.NewVerifier(l.rows, "").Verify(ctx, hash); err == nil {
			in = append(in, cmp.Or(names[hash], "another"))
		}
	}
	slices.Sort(in)
	l.letIn = strings.Join(in, " ")
	return l
}

// line fills in the names of a command line.
func (d *tenancy) line(words string) string {
	names := []string{"ACCOUNT", string(d.account), "SECOND", string(d.second), "DEFAULT", string(d.Tenant.Workspace), "BEFORE", d.Before, "NEXT", d.Outputs.SealingKey}
	for name, hash := range d.keys {
		names = append(names, strings.ToUpper(name), string(hash))
	}
	return strings.NewReplacer(names...).Replace(words)
}

func (d *tenancy) operation(words string) cases.Operation {
	return d.commandLine(d.Environment, d.line(words))
}

// credential stores a credential, like a request that has got its position.
func (d *tenancy) credential(ctx context.Context, c cases.Clients, w ids.Workspace, name string, change func(*byok.Draft)) (ids.Credential, error) {
	position, err := auth.NewPositions(c.DB, d.Outputs.Access, 0, 0).Next(ctx, d.account, w, "openai", 1)
	if err != nil {
		return "", err
	}
	key := d.OldKey
	if name == "late" {
		key = d.Outputs.SealingKey
	}
	store := byok.NewStore(c.DB, d.Outputs.Credentials, d.Outputs.Control, seal.NewSealer(c.KMS, key))
	draft, err := store.Seal(ctx, d.account, w, byok.New{Settings: byok.Settings{Provider: "openai", Name: name}, Key: secret.New([]byte(providerKey))})
	if err != nil {
		return "", err
	}
	draft.SortOrder = position.SortOrder
	change(&draft)
	return draft.ID, store.Create(ctx, draft)
}

// stores stores a credential that lists these keys.
func (d *tenancy) stores(w ids.Workspace, name string, listed ...string) ids.Credential {
	id, err := d.credential(d.TB().Context(), d.Clients, w, name, func(draft *byok.Draft) {
		for _, key := range listed {
			draft.AllowedAPIKeyHashes = append(draft.AllowedAPIKeyHashes, d.keys[key])
		}
	})
	kit.Must(d.TB(), err)
	return id
}

// creates is a request that stores a credential in the second workspace.
func (d *tenancy) creates() cases.Operation {
	return d.Command("a create", func(ctx context.Context, c cases.Clients) error {
		_, err := d.credential(ctx, c, d.second, "late", func(*byok.Draft) {})
		return err
	}, auth.ErrNoWorkspace)
}

// fillSecond stores credentials, files and uploads in the second workspace, and a file beside it.
func (d *tenancy) fillSecond() {
	t := d.TB()
	d.hasFiles = true
	for range 7 { // more than the first pages of two readings
		d.stores(d.second, "one", "listed")
	}
	for _, w := range []ids.Workspace{d.second, d.Tenant.Workspace} {
		d.Bucket().Put(t, files.Key(w, "file_1"), "content")
		d.Bucket().Put(t, files.Key(w, "file_1"), "newer")
	}
	d.Bucket().Hide(t, files.Key(d.second, "file_1"))
	d.Bucket().Put(t, files.Key(d.second, "file_2"), "content")
	d.begin(d.second)
	d.begin(d.Tenant.Workspace)
}

func (d *tenancy) begin(w ids.Workspace) {
	key := files.Key(w, "file_parts")
	_, err := d.S3.CreateMultipartUpload(d.TB().Context(), &s3.CreateMultipartUploadInput{Bucket: &d.Outputs.Files, Key: &key})
	kit.Must(d.TB(), err)
}

// scenario makes the scenario of a command line. fine returns what is wrong when it is done, and always
// what may never be. The repeated command must end in one of the codes.
func (d *tenancy) scenario(words string, fine, always func(*snapshot) string, codes ...string) cases.Scenario {
	op := d.operation(words)
	return cases.Scenario{Operation: op, Judge: func(outcomes []cases.Outcome) {
		last, now := outcomes[len(outcomes)-1], d.snapshot()
		if why := always(now); why != "" {
			d.Broken("stored", "%s ends in %s, and %s", op.Name, last.Result.Text, why)
		}
		shown, _ := last.Result.Shown.(answer)
		if last.Again && !slices.Contains(codes, last.Result.Text) {
			d.Broken("result", "%s repeated ends in %s: %s", op.Name, last.Result.Text, shown.stderr)
		}
		if !last.Again {
			last = outcomes[0]
			d.judge(op.Name, last, len(outcomes) > 1, now)
		}
		if last.Again || last.Result.Text == codes[0] {
			if why := fine(now); why != "" {
				d.Broken("stored", "%s ends in %s, but %s", op.Name, last.Result.Text, why)
			}
		}
	}}
}

// advice are the words of a sentence that says what to do.
var advice = regexp.MustCompile("epeat|may have been done|is not running|deadline")

// judge compares the exit code and the audit lines of a command with what it changed.
func (d *tenancy) judge(name string, done cases.Outcome, concurrent bool, now *snapshot) {
	shown, _ := done.Result.Shown.(answer)
	lines, code := shown.audits(), done.Result.Text
	outcomes := map[string]string{"0": "done", "1": "uncertain"}
	begun := len(lines) > 0 && lines[0]["outcome"] == "begun"
	if begun || len(lines) == 1 {
		last := lines[len(lines)-1]["outcome"]
		lost := last == "uncertain" && code != "0" && done.Fault != nil && done.Fault.Applied
		if last != cmp.Or(outcomes[code], "refused") && last != "unchanged" && !lost {
			d.Broken("line", "the last line of %s says %v, but the exit code is %s", name, last, code)
		}
	}
	if concurrent || d.OnEngines() { // only the model knows at once whether anything has changed
		return
	}
	changed := d.Changed()
	if changed && len(lines) == 0 {
		d.Broken("line", "%s has changed something, and wrote no audit line", name)
	}
	for _, line := range lines {
		if line["outcome"] == "done" && now.denies(line) {
			d.Broken("line", "%v says done, but the key's row says otherwise", line["action"])
		}
	}
	switch {
	case code == "1" && !changed && done.Fault != nil && done.Fault.Refused && !done.Fault.Recovers:
		d.Broken("result", "%s ends in 1, and nothing was changed: %s", name, shown.stderr)
	case code != "0" && code != "1" && changed:
		d.Broken("stored", "%s ends in %s, and something was changed: %s", name, code, shown.stderr)
	case code == "1" && begun && !advice.MatchString(shown.stderr):
		d.Broken("result", "%s does not say what to do: %s", name, shown.stderr)
	}
}

// denies reports whether the row of a line's key shows that the line is not true.
func (l *snapshot) denies(line map[string]any) bool {
	hash, _ := line["key"].(string)
	key, exists := l.Keys[ids.KeyHash(hash)]
	switch line["action"] {
	case "key.disable":
		return exists && !key.Disabled
	case "key.delete":
		return exists
	case "key.suspend":
		return exists && !key.Suspended
	case "key.resume":
		return exists && key.Suspended
	}
	return false
}

func never(*snapshot) string { return "" }

func unless(fine bool, format string, a ...any) string {
	if fine {
		return ""
	}
	return fmt.Sprintf(format, a...)
}

// TestCases plays the operator's acts of several steps, as they are shipped. Their random numbers
// come from a seed.
func TestCases(t *testing.T) {
	if apart(t) {
		return
	}
	s := &shipped{folder: t.TempDir(), parsed: map[string]parsedLine{}}
	all := cases.Suite{}
	// add adds a case: fill stores more than a tenancy has, and set makes the operations.
	add := func(name string, fill func(*tenancy), set func(*tenancy) cases.Scenario) {
		all.Cases = append(all.Cases, cases.Case{Name: name, Versioning: "Enabled", RandomOrder: true, Page: 3, SetUp: func(env *cases.Environment) cases.Scenario {
			d := cases.Prepared(env, func() tenancy {
				d := tenancy{Environment: env, shipped: s}
				d.fill()
				fill(&d)
				d.before = d.snapshot()
				return d
			})
			d.Environment = env
			return set(&d)
		}})
	}
	nothing := func(*tenancy) {}
	add("suspend", nothing, func(d *tenancy) cases.Scenario {
		p := d.scenario("account disable ACCOUNT --yes", func(l *snapshot) string {
			return unless(l.Accounts[d.account].Suspended && l.letIn == "stranger's", "the account's row is suspended: %t; let in: %s", l.Accounts[d.account].Suspended, l.letIn)
		}, never, "0")
		p.Concurrent = []cases.Concurrent{
			{Operation: d.operation("key create another --account ACCOUNT"), AfterConcurrent: "0", OwnOutcomes: []string{"4"}},
			{Operation: d.operation("key delete PLAIN --yes"), AfterConcurrent: "0"},
		}
		return p
	})
	add("resume", func(d *tenancy) {
		for name, hash := range d.keys {
			if name != "stranger's" {
				kit.Must(d.TB(), d.Registry.SuspendKey(d.TB().Context(), d.account, hash, true))
			}
		}
		kit.Must(d.TB(), d.Registry.SuspendAccount(d.TB().Context(), d.account, true))
	}, func(d *tenancy) cases.Scenario {
		p := d.scenario("account enable ACCOUNT", func(l *snapshot) string {
			return unless(!l.Accounts[d.account].Suspended && strings.HasSuffix(l.letIn, "bound listed marked plain stranger's"),
				"the account's row is suspended: %t; let in: %s", l.Accounts[d.account].Suspended, l.letIn)
		}, func(l *snapshot) string {
			marked := 0
			for _, key := range l.Keys {
				if key.Suspended {
					marked++
				}
			}
			return unless(marked == 0 || l.Accounts[d.account].Suspended, "keys of the account can be made while %d stay suspended", marked)
		}, "0")
		p.Concurrent = []cases.Concurrent{{Operation: d.operation("key create another --account ACCOUNT"), AfterConcurrent: "0", OwnOutcomes: []string{"0", "4"}}}
		return p
	})
	add("delete a workspace", func(d *tenancy) {
		kit.Must(d.TB(), d.Registry.SetDefaultWorkspace(d.TB().Context(), d.account, d.second))
	}, func(d *tenancy) cases.Scenario {
		p := d.scenario("workspace delete SECOND --account ACCOUNT --yes", d.deleted, d.halfDeleted, "0")
		p.Concurrent = []cases.Concurrent{
			{Operation: d.operation("key create another --account ACCOUNT --workspace SECOND"), AfterConcurrent: "0", OwnOutcomes: []string{"4"}},
			{Operation: d.operation("key enable BOUND"), AfterConcurrent: "0", OwnOutcomes: []string{"4"}},
			{Operation: d.operation("workspace default DEFAULT --account ACCOUNT"), AfterConcurrent: "0"},
		}
		return p
	})
	add("erase", (*tenancy).fillSecond, func(d *tenancy) cases.Scenario {
		// The faults of its calls are played where a deletion, a purge and a key's deletion stand alone.
		p := d.scenario("workspace erase SECOND --account ACCOUNT --yes", func(l *snapshot) string {
			_, bound := l.Keys[d.keys["bound"]]
			_, marked := l.Keys[d.keys["marked"]]
			return cmp.Or(d.deleted(l), d.purged(l), unless(!bound && !marked, "a bound key is left"))
		}, d.halfDeleted, "0")
		p.Operation.ConcurrentOnly = true
		p.Concurrent = []cases.Concurrent{
			{Operation: d.operation("key create another --account ACCOUNT --workspace SECOND"), AfterConcurrent: "0", OwnOutcomes: []string{"4"}},
			{Operation: d.creates(), InFlight: true, OwnOutcomes: []string{"failed"}},
		}
		return p
	})
	add("purge", func(d *tenancy) {
		d.fillSecond()
		d.Tenant.DeleteWorkspace(d.TB(), d.second)
	}, func(d *tenancy) cases.Scenario {
		p := d.scenario("workspace purge SECOND --account ACCOUNT --yes", d.purged, d.halfDeleted, "0")
		p.Concurrent = []cases.Concurrent{{Operation: d.operation("workspace delete SECOND --account ACCOUNT --yes"), AfterConcurrent: "0"}}
		return p
	})
	lists := func(d *tenancy) {
		d.stores(d.Tenant.Workspace, "one", "listed")
		d.stores(d.second, "two", "plain", "listed")
		d.stores(d.second, "three", "plain")
	}
	add("disable a key", lists, func(d *tenancy) cases.Scenario {
		p := d.scenario("key disable LISTED", func(l *snapshot) string {
			return unless(l.letIn == "bound plain stranger's", "let in: %s", l.letIn)
		}, never, "0", "3")
		d.warns(&p, "Query account# 1", "Query account# 2", "Query account# 3", "Query workspace# 1", "Query workspace# 2", "BatchGetItem key# 1")
		p.Concurrent = []cases.Concurrent{{Operation: d.operation("key delete LISTED --yes"), AfterConcurrent: "3", OwnOutcomes: []string{"0"}}}
		return p
	})
	add("delete a key", lists, func(d *tenancy) cases.Scenario {
		p := d.scenario("key delete LISTED --yes", func(l *snapshot) string {
			_, exists := l.Keys[d.keys["listed"]]
			listed := l.listed[d.keys["listed"]] // a list for this key alone keeps it: an empty one admits nobody
			return unless(!exists && listed <= 1, "the key is there: %t, and %d lists have it", exists, listed)
		}, func(l *snapshot) string {
			return unless(l.listed[d.keys["listed"]] == 2 || !strings.Contains(l.letIn, "listed"), "the key is let in, and %d lists have it", l.listed[d.keys["listed"]])
		}, "0", "3")
		d.warns(&p, "Query account# 1", "Query account# 2", "Query account# 3", "Query workspace# 1", "Query workspace# 2", "BatchGetItem key# 1")
		p.Concurrent = []cases.Concurrent{{Operation: d.operation("key replace LISTED PLAIN"), AfterConcurrent: "0", OwnOutcomes: []string{"0", "1", "3", "4"}}}
		return p
	})
	add("replace a key", lists, func(d *tenancy) cases.Scenario {
		p := d.scenario("key replace LISTED PLAIN", func(l *snapshot) string {
			return unless(l.listed[d.keys["plain"]] == 3, "%d lists have the new key", l.listed[d.keys["plain"]])
		}, func(l *snapshot) string {
			return unless(l.listed[d.keys["listed"]] == 2, "%d lists have the old key", l.listed[d.keys["listed"]])
		}, "0")
		p.Concurrent = []cases.Concurrent{{Operation: d.operation("key replace LISTED BOUND"), AfterConcurrent: "0"}}
		return p
	})
	add("supersede a credential", func(d *tenancy) {
		d.stores(d.second, "old")
		d.stores(d.second, "new")
	}, func(d *tenancy) cases.Scenario {
		both := func() (old, successor byok.Credential) {
			found, err := d.Manager.List(d.TB().Context(), d.second)
			kit.Must(d.TB(), err)
			if found[0].Name == "old" {
				return found[0], found[1]
			}
			return found[1], found[0]
		}
		old, successor := both()
		p := d.scenario(fmt.Sprintf("credential supersede %s %s", old.ID, successor.ID), func(*snapshot) string {
			old, successor := both()
			return unless(old.Disabled && !successor.Disabled && successor.SortOrder < old.SortOrder, "stored are %+v and %+v", old, successor)
		}, func(*snapshot) string {
			old, successor := both()
			return unless(!old.Disabled || !successor.Disabled, "both are disabled") + unless(old.SortOrder != successor.SortOrder, "both have one place")
		}, "0")
		ends := p.Operation.FaultOutcomes
		p.Operation.FaultOutcomes = func(c cases.Call, f *cases.Fault, always bool, alone string) []string {
			if f.Cancelled { // it starts over
				return []string{alone, "1", "5"}[:1+map[bool]int{true: 2}[always]]
			}
			return ends(c, f, always, alone)
		}
		judge := p.Judge
		p.Judge = func(outcomes []cases.Outcome) {
			o := outcomes[0]
			if took := o.Result.Ended.Sub(o.Result.Began); !d.OnEngines() && o.Fault != nil && o.Fault.Cancelled && o.Result.Text == "0" && took < 2*byok.ReadTime {
				d.Broken("result", "it starts over, and has taken %v: each time a reading may last %v", took, byok.ReadTime)
			}
			judge(outcomes)
		}
		p.Concurrent = []cases.Concurrent{{Operation: d.operation("credential disable " + string(old.ID)), AfterConcurrent: "0"}}
		return p
	})
	add("repair a restored table", func(d *tenancy) {
		t, ctx, live := d.TB(), d.TB().Context(), d.Rows(d.Outputs.Access)
		kit.Must(t, d.Registry.SuspendKey(ctx, d.account, d.keys["marked"], false))
		d.stores(d.second, "early")
		moment := live.All(t)
		kit.Must(t, d.Registry.DisableKey(ctx, d.account, d.keys["listed"]))
		kit.Must(t, d.Registry.DeleteKey(ctx, d.account, d.keys["bound"]))
		kit.Must(t, d.Registry.SuspendKey(ctx, d.account, d.keys["marked"], true))
		d.Rows(d.Before).Become(t, live.All(t))
		d.stores(d.second, "since") // no counter has its place
		live.Become(t, moment)
	}, func(d *tenancy) cases.Scenario {
		p := d.scenario("restore repair --before BEFORE --yes", func(l *snapshot) string {
			return unless(l.letIn == "plain stranger's" && (l.Workspaces[d.second].Next["openai"] > 1 || !l.Workspaces[d.second].DeletedAt.IsZero()) && len(l.Missing) == 0,
				"let in: %s; the next position is %d", l.letIn, l.Workspaces[d.second].Next["openai"])
		}, never, "0")
		p.Concurrent = []cases.Concurrent{
			{Operation: d.operation("workspace delete SECOND --account ACCOUNT --yes"), AfterConcurrent: "0"},
			{Operation: d.operation("key delete BOUND --yes"), AfterConcurrent: "0"},
		}
		return p
	})
	all.Cases[len(all.Cases)-1].Page = 0 // an engine chooses the order of a scan; TestLists has its pages
	add("rewrap", func(d *tenancy) {
		d.stores(d.second, "one")
		d.stores(d.Tenant.Workspace, "two")
	}, func(d *tenancy) cases.Scenario {
		opens := func(wanted string) string {
			for _, row := range kit.Credentials(d.TB(), d.Rows(d.Outputs.Credentials).All(d.TB())) {
				key, err := row.Open(d.TB().Context(), seal.NewOpener(d.KMS, row.Seal.KeyARN))
				if err != nil || string(key.Reveal()) != providerKey || wanted != "" && row.Seal.KeyARN != wanted {
					return fmt.Sprintf("a credential under %s opens with %v", row.Seal.KeyARN, err)
				}
			}
			return ""
		}
		p := d.scenario("credential rewrap --to NEXT --rate 5000", func(*snapshot) string { return opens(d.Outputs.SealingKey) }, func(*snapshot) string { return opens("") }, "0")
		p.Concurrent = []cases.Concurrent{{Operation: d.creates()}}
		return p
	})
	all.Cases[len(all.Cases)-1].SkipEngines = "an engine chooses the segments of its rows, and so which moves run side by side"
	all.Run(t)
}

// warns adds to the results of a fault the one without it, at the first calls: they only serve a
// warning.
func (d *tenancy) warns(p *cases.Scenario, reads ...string) {
	ends := p.Operation.FaultOutcomes
	p.Operation.FaultOutcomes = func(c cases.Call, f *cases.Fault, always bool, alone string) []string {
		if slices.Contains(reads, c.String()) {
			return append(ends(c, f, always, alone), alone)
		}
		return ends(c, f, always, alone)
	}
}

// deleted returns what is left of the second workspace's deletion.
func (d *tenancy) deleted(l *snapshot) string {
	for hash, key := range l.Keys {
		if key.Workspace == d.second && !key.Disabled {
			return "its key " + hash.Short() + " is enabled"
		}
	}
	return unless(!l.Workspaces[d.second].DeletedAt.IsZero(), "the workspace is live") + unless(l.Accounts[d.account].Default != d.second, "it is the default")
}

// halfDeleted returns what may never be: a deleted default, a key in a part of its lists, or a
// change of the other workspace.
func (d *tenancy) halfDeleted(l *snapshot) string {
	return unless(l.Workspaces[d.second].DeletedAt.IsZero() || l.Accounts[d.account].Default != d.second, "the default workspace is deleted") +
		unless(len(l.Missing)+len(l.Stray) == 0, "entries of lists are missing %v or stray %v", l.Missing, l.Stray) +
		unless(l.in[d.Tenant.Workspace] == d.before.in[d.Tenant.Workspace], "the other workspace has %s", l.in[d.Tenant.Workspace])
}

// purged returns what is left in the second workspace.
func (d *tenancy) purged(l *snapshot) string {
	return unless(l.in[d.second] == "0 credentials, 0 versions, 0 uploads", "the workspace has %s", l.in[d.second])
}

// Each list reads all of its pages.
func TestLists(t *testing.T) {
	cases.OnModel(t, "", 3, func(env *cases.Environment) {
		d := tenancy{Environment: env, shipped: &shipped{folder: t.TempDir(), parsed: map[string]parsedLine{}}}
		d.fill()
		for n := range 4 {
			d.stores(d.second, "n")
			d.Tenant.NewWorkspace(d.TB())
			d.Bucket().Put(d.TB(), files.Key(d.second, ids.File(fmt.Sprint("file_", n))), "content")
			_, err := d.Jobs.Create(d.TB().Context(), d.account)
			kit.Must(d.TB(), err)
			d.Stranger()
		}
		for line, want := range map[string]int{
			"account list": 6, "job list --account ACCOUNT": 4, "key list --account ACCOUNT": 5, "workspace list --account ACCOUNT": 6,
			"credential list --account ACCOUNT --workspace SECOND": 4, "file list --account ACCOUNT --workspace SECOND": 4,
		} {
			shown, _ := d.Short(d.operation(line+" --json"), 0).Shown.(answer)
			if got := strings.Count(shown.stdout, `_at":"`); got != want {
				d.Broken("result", "%s has %d lines, want %d: %s%s", line, got, want, shown.stdout, shown.stderr)
			}
		}
	})
}
