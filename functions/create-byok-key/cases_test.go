package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/test/cases"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// The calls of the function.
const (
	key, idem, account = "GetItem key#", "GetItem idem#", "GetItem account#"
	position, dataKey  = "UpdateItem workspace#", "GenerateDataKey"
	hashes             = "BatchGetItem key#"
	workspace, count   = "GetItem workspace#", "Query workspace#"
	put, both          = "PutItem workspace#", "TransactWriteItems workspace#+idem#"
)

const (
	sentKey = "sk-zQ7-marker-mX4w-of-a-request-of-a-case-end"
	of      = "openai"
	full    = "400 /workspace_id"
)

// situation is an environment with what its judge must know.
type situation struct {
	*cases.Environment

	filled  map[ids.Credential]bool // rows that no request made
	removed map[ids.Credential]bool // by the operator
	changed map[ids.Credential]bool // by the operator
	earlier []cases.Outcome
	bound   int // of the workspace; 0 means the default
	purged  bool

	disabledFirst bool // a successor, before the old credential
}

// body are the members of a request. Those given replace others; nil removes one.
func (s *situation) body(change map[string]any) map[string]any {
	body := map[string]any{
		"key": sentKey, "provider": of, "name": functest.Private + "name", "workspace_id": s.Tenant.Workspace,
		"allowed_models": []string{functest.Private + "model"}, "allowed_user_ids": []string{},
	}
	maps.Copy(body, change)
	maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
	return body
}

// creates makes the operation of a request with these changed members.
func (s *situation) creates(name string, change map[string]any, edit ...func(functest.Event) functest.Event) cases.Operation {
	e := createRequest(s.body(change)).As(s.Tenant.Management)
	if s.bound > 0 {
		e.Stage["credentialsPerWorkspace"] = strconv.Itoa(s.bound)
	}
	for _, f := range edit {
		e = f(e)
	}
	return s.Request(name, cases.Request{Assemble: assemble, Event: e})
}

// once sends the request under an idempotency key.
func once(e functest.Event) functest.Event { return e.With("Idempotency-Key", "once") }

func asKey(token string) func(functest.Event) functest.Event {
	return func(e functest.Event) functest.Event { return e.As(token) }
}

// created makes a credential before all others.
func (s *situation) created(edit ...func(functest.Event) functest.Event) ids.Credential {
	r := cases.Prepared(s.Environment, func() cases.Result { return s.Short(s.creates("earlier", nil, edit...), 0) })
	s.earlier = append(s.earlier, cases.Outcome{Operation: "earlier", Result: r})
	return ids.Credential(fmt.Sprint(shownBy(s.Environment, r)["id"]))
}

// shownBy is the credential that a 201 shows.
func shownBy(env *cases.Environment, r cases.Result) map[string]any {
	return cases.Body[struct{ Data map[string]any }](env, r).Data
}

// most is how many credentials a workspace holds that is filled.
const most = 5

// fill stores credentials in the tenant's workspace, as if requests had made them. That many more
// were made and deleted.
func (s *situation) fill(stored, deleted int) {
	s.bound = most
	first := s.created()
	s.filled = cases.Prepared(s.Environment, func() map[ids.Credential]bool { return s.fillBeside(first, stored, deleted) })
}

// fillBeside copies a credential.
func (s *situation) fillBeside(first ids.Credential, stored, deleted int) map[ids.Credential]bool {
	t, credentials, access, filled := s.TB(), s.Rows(s.Outputs.Credentials), s.Rows(s.Outputs.Access), map[ids.Credential]bool{}
	partition := "workspace#" + string(s.Tenant.Workspace)
	row := credentials.Get(t, kit.Key(partition, "credential#"+string(first)))
	for n := range stored - 1 {
		other, id := maps.Clone(row), fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		other["id"], other["sk"], other["sort_order"] = kit.Text(id), kit.Text("credential#"+id), kit.Number(strconv.Itoa(n+1))
		credentials.Put(t, other)
		filled[ids.Credential(id)] = true
	}
	made := strconv.Itoa(stored + deleted)
	access.Change(t, kit.Key(partition, "workspace"), func(row kit.Row) {
		row["made"], row["made_bytes"] = kit.Number(made), kit.Number(made+"000")
		row["next"] = &types.AttributeValueMemberM{Value: kit.Row{of: kit.Number(made)}}
	})
	return filled
}

// expire lets the records of all earlier requests expire. They stay stored, as DynamoDB may keep
// them.
func (s *situation) expire() {
	rows := s.Rows(s.Outputs.Control)
	for _, row := range rows.All(s.TB()) {
		if row["fingerprint"] != nil {
			rows.Set(s.TB(), row, "exp", kit.Number("1"))
		}
	}
}

// judge compares what is stored with the results.
func (s *situation) judge(outcomes []cases.Outcome) {
	stored, err := byok.ReadAll(s.TB().Context(), s.DB, s.Outputs.Credentials, s.Tenant.ID, s.Tenant.Workspace)
	if err != nil {
		s.Broken("stored", "the credentials cannot be read: %v", err)
		return
	}
	answered, uncertain := s.answers(append(slices.Clone(s.earlier), outcomes...))
	positions, unanswered := map[int64]bool{}, 0
	for _, c := range stored {
		if positions[c.SortOrder] {
			s.Broken("stored", "two credentials have the sort_order %d", c.SortOrder)
		}
		positions[c.SortOrder] = true
		if s.filled[c.ID] { // it has the seal of another
			continue
		}
		if opened, err := seal.NewOpener(s.KMS, s.Outputs.SealingKey).Open(s.TB().Context(), c.Sealed, c.Binding()); err != nil || string(opened.Reveal()) != sentKey {
			s.Broken("stored", "a credential does not open: %v", err)
		}
		given, ok := answered[c.ID]
		if !ok {
			unanswered++
			continue
		}
		want := kit.SettingsByName(s.TB(), c.Settings)
		maps.Copy(want, map[string]any{
			"id": string(c.ID), "workspace_id": string(c.Workspace), "label": "sk-...-end", "sort_order": float64(c.SortOrder), "created_at": c.CreatedAt.Format(time.RFC3339),
		})
		if !s.changed[c.ID] && !reflect.DeepEqual(given, want) {
			s.Broken("stored", "answered %v, stored %v", given, want)
		}
	}
	for id := range answered {
		if !s.removed[id] && !s.purged && !slices.ContainsFunc(stored, func(c byok.Stored) bool { return c.ID == id }) {
			s.Broken("stored", "a credential was answered and is not stored")
		}
	}
	if unanswered > uncertain {
		s.Broken("stored", "%d credentials are stored without a 201, at most %d may be", unanswered, uncertain)
	}
}

// answers are the credentials that the 201s show, and how many more may be stored: by requests
// that failed.
func (s *situation) answers(outcomes []cases.Outcome) (answered map[ids.Credential]map[string]any, uncertain int) {
	answered = map[ids.Credential]map[string]any{}
	var failed, replayed int
	slices.SortStableFunc(outcomes, func(a, b cases.Outcome) int { return len(a.Result.Text) - len(b.Result.Text) }) // replays last
	for _, o := range outcomes {
		answer, isRequest := o.Result.Shown.(functest.Answer)
		if !isRequest {
			continue
		}
		switch answer.Status {
		case http.StatusCreated:
			made := shownBy(s.Environment, o.Result)
			id := ids.Credential(fmt.Sprint(made["id"]))
			if answer.Audit["credential"] != made["id"] || answer.Audit["workspace"] != made["workspace_id"] {
				s.Broken("line", "the audit line %v names another credential than the answer", answer.Audit)
			}
			if is := answer.Header["Idempotent-Replayed"] == "true"; is != (answer.Line["replayed"] == true) {
				s.Broken("line", "replayed: %t, and the log line has %v", is, answer.Line["replayed"])
			} else if is {
				replayed++
			} else if answered[id] != nil {
				s.Broken("result", "two requests are answered with one credential, and none as a replay")
			}
			if before := answered[id]; before != nil && !reflect.DeepEqual(before, made) {
				s.Broken("result", "a replay has another body: %v instead of %v", made, before)
			}
			answered[id] = made
		case http.StatusInternalServerError:
			failed++
		}
	}
	if replayed > 0 { // so an attempt that failed was the stored one
		failed = 0
	}
	return answered, failed
}

// in makes a case: set makes the operation and those that run at the same time.
func in(name string, set func(*situation) (cases.Operation, []cases.Concurrent)) cases.Case {
	return cases.Case{Name: name, SetUp: func(env *cases.Environment) cases.Scenario {
		s := newSituation(env)
		op, concurrent := set(s)
		return cases.Scenario{Operation: op, Concurrent: concurrent, Judge: s.judge}
	}}
}

func newSituation(env *cases.Environment) *situation {
	return &situation{Environment: env, filled: map[ids.Credential]bool{}, removed: map[ids.Credential]bool{}, changed: map[ids.Credential]bool{}}
}

// alone are the cases of a single request, with every fault.
func aloneCases() []cases.Case {
	one := func(name, want string, rounds int, calls, optional []string, set func(*situation) cases.Operation) cases.Case {
		return in(name, func(s *situation) (cases.Operation, []cases.Concurrent) {
			op := set(s)
			op.Want, op.Calls, op.Rounds, op.OptionalCalls = want, calls, rounds, optional
			return op, nil
		})
	}
	unnamed := map[string]any{"workspace_id": nil}
	listing := func(hashes ...string) map[string]any {
		return map[string]any{"workspace_id": nil, "allowed_api_key_hashes": hashes}
	}
	hash := func(token string) string { return string(auth.HashKey(token)) }
	return []cases.Case{
		one("default workspace", "201", 4, []string{key, account, position, dataKey, put}, nil, func(s *situation) cases.Operation { return s.creates("create", unnamed) }),
		one("named workspace", "201", 3, []string{key, position, dataKey, put}, nil, func(s *situation) cases.Operation { return s.creates("create", nil) }),
		one("everything", "201", 3, []string{key, idem, position, dataKey, hashes, both}, nil, func(s *situation) cases.Operation {
			own, t := hash(s.Tenant.Management), s.TB()
			others := []string{s.Tenant.StandardKey(t, s.Tenant.Workspace), s.Tenant.DisabledKey(t), s.Tenant.ExpiredKey(t)}
			return s.creates("create", map[string]any{"allowed_api_key_hashes": []string{own, hash(others[0]), hash(others[1]), hash(others[2]), own}}, once)
		}),
		one("replay", "201 replayed", 1, []string{key, idem}, nil, func(s *situation) cases.Operation {
			s.created(once)
			return s.creates("create", nil, once)
		}),
		one("replay without a workspace", "201 replayed", 1, []string{key, idem}, nil, func(s *situation) cases.Operation {
			s.created(once)
			s.Tenant.DeleteWorkspace(s.TB(), s.Tenant.Workspace)
			return s.creates("create", nil, once)
		}),
		one("record expired", "201", 3, []string{key, idem, position, dataKey, both}, nil, func(s *situation) cases.Operation {
			s.created(once)
			s.expire()
			return s.creates("create", nil, once)
		}),
		one("another request", "400", 1, []string{key, idem}, nil, func(s *situation) cases.Operation {
			s.created(once)
			return s.creates("create", map[string]any{"disabled": true}, once)
		}),
		one("room after many deletions", "201", 4, []string{key, position, count, dataKey, put}, nil, func(s *situation) cases.Operation {
			s.fill(most-2, 4)
			return s.creates("create", nil)
		}),
		one("full workspace", full, 3, []string{key, position, count, dataKey}, []string{dataKey}, func(s *situation) cases.Operation {
			s.fill(most, 0)
			return s.creates("create", nil)
		}),
		one("full workspace, idempotency key", full, 4, []string{key, idem, position, count, dataKey, idem}, []string{dataKey}, func(s *situation) cases.Operation {
			s.fill(most, 0)
			return s.creates("create", nil, once)
		}),
		one("unknown member", "400  /key", 1, []string{key}, nil, func(s *situation) cases.Operation {
			return s.creates("create", map[string]any{kit.Marker + "models": "x", "key": 7})
		}),
		one("unknown API key in the list", "400 /allowed_api_key_hashes/1", 3, []string{key, account, position, dataKey, hashes}, []string{position, dataKey}, func(s *situation) cases.Operation {
			return s.creates("create", listing(hash(s.Tenant.Management), hash("nobody's")))
		}),
		one("another account's API key in the list", "400 /allowed_api_key_hashes/0", 3, []string{key, account, position, dataKey, hashes}, []string{position, dataKey}, func(s *situation) cases.Operation {
			return s.creates("create", listing(hash(s.Stranger().Management)))
		}),
		one("another account's workspace", full, 3, []string{key, position, workspace, dataKey}, []string{dataKey}, func(s *situation) cases.Operation {
			return s.creates("create", map[string]any{"workspace_id": s.Stranger().Workspace})
		}),
		one("unknown workspace", full, 3, []string{key, position, workspace, dataKey}, []string{dataKey}, func(s *situation) cases.Operation {
			return s.creates("create", map[string]any{"workspace_id": ids.New[ids.Workspace]()})
		}),
		one("deleted workspace", full, 4, []string{key, idem, position, workspace, dataKey, idem}, []string{dataKey}, func(s *situation) cases.Operation {
			s.Tenant.DeleteWorkspace(s.TB(), s.Tenant.Workspace)
			return s.creates("create", nil, once)
		}),
		one("no default workspace", "400 /allowed_api_key_hashes/0 /workspace_id", 3, []string{key, account, hashes}, nil, func(s *situation) cases.Operation {
			s.Tenant.DeleteWorkspace(s.TB(), s.Tenant.Workspace)
			op := s.creates("create", listing(hash("nobody's")))
			op.FaultOutcomes = func(c cases.Call, f *cases.Fault, always bool, _ string) []string {
				if c.Kind == hashes && (!f.Recovers || always && !f.Usable) {
					return []string{full} // the workspace alone decides
				}
				return nil
			}
			return op
		}),
		one("standard key", "403 management_key_required", 1, []string{key, idem}, []string{idem}, func(s *situation) cases.Operation {
			return s.creates("create", nil, once, asKey(s.Tenant.StandardKey(s.TB(), "")))
		}),
		one("unknown key", "401 unknown_key", 1, []string{key, idem}, []string{idem}, func(s *situation) cases.Operation {
			return s.creates("create", nil, once, asKey(kit.Marker+"unknown"))
		}),
	}
}

// concurrentCases are requests with another operation before and after each of their calls.
func concurrentCases() []cases.Case {
	with := func(name, after string, own []string, set func(*situation) (cases.Operation, cases.Operation)) cases.Case {
		return in(name, func(s *situation) (cases.Operation, []cases.Concurrent) {
			op, b := set(s)
			op.ConcurrentOnly = true
			return op, []cases.Concurrent{{Operation: b, AfterConcurrent: after, OwnOutcomes: own}}
		})
	}
	two := func(name, after string, own []string, prepare func(*situation), change map[string]any, edit ...func(functest.Event) functest.Event) cases.Case {
		return with(name, after, own, func(s *situation) (cases.Operation, cases.Operation) {
			prepare(s)
			return s.creates("create", nil, edit...), s.creates("other", change, edit...)
		})
	}
	nearlyFull := func(deleted int) func(*situation) { return func(s *situation) { s.fill(most-1, deleted) } }
	command := func(name, after string, set func(*situation) cases.Operation, edit ...func(functest.Event) functest.Event) cases.Case {
		return with(name, after, nil, func(s *situation) (cases.Operation, cases.Operation) {
			b := set(s)
			return s.creates("create", nil, edit...), b
		})
	}
	return []cases.Case{
		two("the same request twice", "201 replayed", []string{"201 replayed"}, func(*situation) {}, nil, once),
		two("two requests under one idempotency key", "400", []string{"400"}, func(*situation) {}, map[string]any{"disabled": true}, once),
		two("two requests", "201", nil, func(*situation) {}, nil),
		two("two requests, room for one", full, []string{full}, nearlyFull(0), nil),
		two("two requests, room for one after a deletion", full, []string{full}, nearlyFull(1), nil),
		two("the same request twice, room for one", "201 replayed", []string{"201 replayed"}, nearlyFull(0), nil, once),
		two("the same request twice, record expired", "201 replayed", []string{"201 replayed"}, func(s *situation) {
			s.created(once)
			s.expire()
		}, nil, once),
		two("a request that is refused and another, room for one", "201", []string{"400 /allowed_api_key_hashes/0", "400 /allowed_api_key_hashes/0 /workspace_id"},
			nearlyFull(0), map[string]any{"allowed_api_key_hashes": []string{string(auth.HashKey("nobody's"))}}),
		command("delete a credential of a full workspace", "201", func(s *situation) cases.Operation {
			s.fill(most-1, 0)
			id := s.created()
			s.removed[id] = true
			return s.Command("delete credential", func(ctx context.Context, c cases.Clients) error { return c.Manager.Delete(ctx, s.Tenant.Workspace, id) }, byok.ErrNotFound)
		}),
		command("delete workspace", full, workspaceDeletion),
		command("delete workspace, idempotency key", full, workspaceDeletion, once),
		with("delete default workspace", full, nil, func(s *situation) (cases.Operation, cases.Operation) {
			return s.creates("create", map[string]any{"workspace_id": nil}), workspaceDeletion(s)
		}),
		command("revoke key", "401 disabled", func(s *situation) cases.Operation {
			return s.Command("revoke", func(ctx context.Context, c cases.Clients) error {
				return c.Registry.DisableKey(ctx, s.Tenant.ID, auth.HashKey(s.Tenant.Management))
			})
		}),
		with("delete a listed key", "400 /allowed_api_key_hashes/0", nil, func(s *situation) (cases.Operation, cases.Operation) {
			listed := auth.HashKey(s.Tenant.StandardKey(s.TB(), ""))
			return s.creates("create", map[string]any{"allowed_api_key_hashes": []ids.KeyHash{listed}}), s.Command("delete key", func(ctx context.Context, c cases.Clients) error {
				return c.Registry.DeleteKey(ctx, s.Tenant.ID, listed)
			})
		}),
	}
}

func workspaceDeletion(s *situation) cases.Operation {
	return s.Command("delete workspace", func(ctx context.Context, c cases.Clients) error {
		return c.Registry.DeleteWorkspace(ctx, s.Tenant.ID, s.Tenant.Workspace)
	})
}

// operatorCases are operations of the operator on credentials.
func operatorCases() []cases.Case {
	superseding := func(name, after string, own []string, set func(s *situation) (cases.Operation, cases.Operation)) cases.Case {
		return in(name, func(s *situation) (cases.Operation, []cases.Concurrent) {
			op, b := set(s)
			return op, []cases.Concurrent{{Operation: b, AfterConcurrent: after, OwnOutcomes: own}}
		})
	}
	disabled := byok.ErrSuccessorDisabled.Error()
	return []cases.Case{
		in("purge", func(s *situation) (cases.Operation, []cases.Concurrent) {
			s.fill(3, 0)
			op := s.Command("purge", func(ctx context.Context, c cases.Clients) error { return s.purge(ctx, c) })
			op.Limit = time.Minute
			return op, []cases.Concurrent{{Operation: s.creates("create", nil), InFlight: true, OwnOutcomes: []string{"201", full, "500"}}}
		}),
		superseding("supersede, and disable the successor", disabled, nil, func(s *situation) (cases.Operation, cases.Operation) {
			old, successor := s.created(), s.created()
			return s.supersedes("supersede", old, successor), s.Command("disable", func(ctx context.Context, c cases.Clients) error {
				err := c.Manager.Disable(ctx, s.Tenant.Workspace, successor)
				s.disabledFirst = !s.at(old).Disabled
				return err
			})
		}),
		superseding("two supersede each other", disabled, []string{disabled}, func(s *situation) (cases.Operation, cases.Operation) {
			one, two := s.created(), s.created()
			return s.supersedes("first", one, two), s.supersedes("second", two, one)
		}),
		superseding("one successor of two", "done", []string{"done"}, func(s *situation) (cases.Operation, cases.Operation) {
			one, two, successor := s.created(), s.created(), s.created()
			return s.supersedes("first", one, successor), s.supersedes("second", two, successor)
		}),
	}
}

// supersedes makes an operation that supersedes a credential. When it is done, the old one is disabled,
// and so is not the successor unless somebody else did that.
func (s *situation) supersedes(name string, old, successor ids.Credential) cases.Operation {
	s.changed[old], s.changed[successor] = true, true
	op := s.Command(name, func(ctx context.Context, c cases.Clients) error {
		_, err := c.Manager.Supersede(ctx, s.Pause, s.Tenant.Workspace, old, successor)
		if from, to := s.at(old), s.at(successor); err == nil && (!from.Disabled || from.SortOrder <= to.SortOrder) {
			s.Broken("stored", "%s is done, the old one is disabled: %t, in position %d after %d", name, from.Disabled, from.SortOrder, to.SortOrder)
		}
		if err == nil && s.disabledFirst {
			s.Broken("stored", "%s disables the old credential after its successor was disabled", name)
		}
		return err
	}, byok.ErrSuccessorDisabled)
	op.Limit = 30 * time.Second
	op.FaultOutcomes = func(_ cases.Call, f *cases.Fault, always bool, alone string) []string {
		if f.Cancelled && !always {
			return []string{alone} // it reads again
		}
		return nil
	}
	return op
}

// at is a stored credential.
func (s *situation) at(id ids.Credential) byok.Credential {
	all, err := s.Manager.List(context.Background(), s.Tenant.Workspace)
	kit.Must(s.TB(), err)
	i := slices.IndexFunc(all, func(c byok.Credential) bool { return c.ID == id })
	return all[i]
}

// purge deletes the workspace and its credentials, at once and when all earlier requests have
// ended. Then nothing is left.
func (s *situation) purge(ctx context.Context, c cases.Clients) error {
	workspace := s.Tenant.Workspace
	s.purged = true
	if err := c.Registry.DeleteWorkspace(ctx, s.Tenant.ID, workspace); err != nil {
		return err
	}
	found, err := c.Registry.FindWorkspace(ctx, s.Tenant.ID, workspace)
	if err != nil {
		return err
	}
	for quiet := found.DeletedAt.Add(auth.DeletionDelay + 15*time.Second); ; {
		late := !s.Now().Before(quiet)
		_, err := c.Manager.Purge(ctx, workspace)
		if err == nil && late {
			left, readErr := byok.ReadAll(ctx, s.DB, s.Outputs.Credentials, s.Tenant.ID, workspace)
			if kit.Must(s.TB(), readErr); len(left) > 0 {
				s.Broken("stored", "%d credentials are left in a purged workspace", len(left))
			}
		}
		if err != nil || late {
			return err
		}
		if err := s.Pause(ctx, quiet.Sub(s.Now())); err != nil {
			return err
		}
	}
}

func TestCases(t *testing.T) {
	cases.Suite{Cases: slices.Concat(aloneCases(), concurrentCases(), operatorCases()), Overlaps: overlaps()}.Run(t)
}

// overlaps are operations at the same time.
func overlaps() []cases.Overlap {
	overlap := func(name string, set func(*situation) []cases.Operation, check func(*situation, []cases.Outcome), reaches ...string) cases.Overlap {
		return cases.Overlap{Name: name, Reaches: reaches, SetUp: func(env *cases.Environment) ([]cases.Operation, func([]cases.Outcome)) {
			s := newSituation(env)
			operations := set(s)
			return operations, func(outcomes []cases.Outcome) {
				s.judge(outcomes)
				if check != nil {
					check(s, outcomes)
				}
			}
		}}
	}
	return []cases.Overlap{
		overlap("the same request three times", func(s *situation) []cases.Operation {
			return []cases.Operation{s.creates("first", nil, once), s.creates("second", nil, once), s.creates("third", map[string]any{"disabled": true}, once)}
		}, func(s *situation, outcomes []cases.Outcome) {
			if n := cases.Count(outcomes, "201"); n != 1 {
				s.Broken("result", "%d of three requests under one idempotency key get a 201 of their own", n)
			}
		}, "first: 201 replayed", "third: 201", "third: 400"),
		overlap("two requests, room for one", func(s *situation) []cases.Operation {
			s.fill(most-1, 7)
			return []cases.Operation{s.creates("first", nil), s.creates("second", nil)}
		}, nil, "first: 201", "first: "+full),
		overlap("the same request twice, workspace deleted", func(s *situation) []cases.Operation {
			return []cases.Operation{s.creates("first", nil, once), s.creates("second", nil, once), workspaceDeletion(s)}
		}, nil, "first: 201", "first: "+full, "second: 201 replayed"),
		overlap("two supersede each other", func(s *situation) []cases.Operation {
			one, two := s.created(), s.created()
			return []cases.Operation{s.supersedes("first", one, two), s.supersedes("second", two, one)}
		}, nil, "first: done", "second: done"),
	}
}
