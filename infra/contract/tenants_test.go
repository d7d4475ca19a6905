package contract_test

import (
	"net/http"
	"testing"
)

// caller is one kind of caller: what it may do is all that the expected
// answers are derived from.
type caller struct {
	name   string
	token  func(a, b tenant) string // a owns the resources, b is somebody else
	reason string                   // of its 401; empty where the key is valid
	own    bool                     // the key is of account a
	manage bool
	bound  func(a tenant) string // the one workspace it reaches, or nil
}

func callers() []caller {
	first := func(a tenant) string { return a.workspace }
	second := func(a tenant) string { return a.second }
	return []caller{
		{name: "unknown key", token: func(tenant, tenant) string { return "unknown" }, reason: "unknown_key"},
		{name: "malformed key", token: func(tenant, tenant) string { return "mal formed" }, reason: "malformed"},
		{name: "disabled key", token: func(a, _ tenant) string { return a.disabled }, reason: "disabled"},
		{name: "expired key", token: func(a, _ tenant) string { return a.expired }, reason: "expired"},
		{name: "standard key", token: func(a, _ tenant) string { return a.standard }, own: true},
		{name: "bound key", token: func(a, _ tenant) string { return a.bound }, own: true, bound: first},
		{name: "key bound elsewhere", token: func(a, _ tenant) string { return a.boundSecond }, own: true, bound: second},
		{name: "management key", token: func(a, _ tenant) string { return a.management }, own: true, manage: true},
		{name: "foreign management key", token: func(_, b tenant) string { return b.management }, manage: true},
		{name: "foreign standard key", token: func(_, b tenant) string { return b.standard }},
		{name: "foreign bound key", token: func(_, b tenant) string { return b.bound }, bound: func(tenant) string { return "" }},
	}
}

// TestTenantsReadingJobs: every kind of caller, every kind of job.
func TestTenantsReadingJobs(t *testing.T) {
	t.Parallel()
	a, b := newTenant(t), newTenant(t)
	jobs := map[string]string{
		"own": a.job(t, "running"), "foreign": b.job(t, "running"), "unknown": unknownJob, "malformed": "no-uuid",
	}
	var notFound *response
	for _, c := range callers() {
		for kind, id := range jobs {
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				got := get(id).as(c.token(a, b)).do(t)
				switch {
				case c.reason != "":
					got.because(t, c.reason)
				case !c.manage:
					got.because(t, "management_key_required")
				case c.own && kind == "own", !c.own && kind == "foreign":
					got.is(t, http.StatusOK)
				default:
					got.is(t, http.StatusNotFound).alike(t, &notFound)
				}
			})
		}
	}
}

// alike fails the test if the response can be told from the first one that
// was compared with the same memory.
func (r response) alike(t *testing.T, first **response) {
	t.Helper()
	if *first == nil {
		*first = &r
	}
	indistinguishable(t, r, **first)
}

// target is where a credential is to go, or a file is said to be.
type target struct {
	name      string
	workspace func(a, b tenant) string // "-" where the request names none
}

func targets() []target {
	return []target{
		{"none named", func(tenant, tenant) string { return "-" }},
		{"default workspace", func(a, _ tenant) string { return a.workspace }},
		{"other workspace", func(a, _ tenant) string { return a.second }},
		{"deleted workspace", func(a, _ tenant) string { return a.deleted }},
		{"foreign workspace", func(_, b tenant) string { return b.workspace }},
		{"unknown workspace", func(tenant, tenant) string { return unknownJob }},
		{"malformed workspace", func(tenant, tenant) string { return "no-uuid" }},
	}
}

// reaches is the workspace that the caller reaches by naming the target, or "".
func (c caller) reaches(a, b tenant, named string) string {
	home, live := a, []string{a.workspace, a.second}
	if !c.own {
		home, live = b, []string{b.workspace, b.second}
	}
	if c.bound != nil {
		live = []string{home.workspace}
		if c.own {
			live = []string{c.bound(a)}
		}
	}
	if named == "-" {
		return live[0]
	}
	for _, w := range live {
		if w == named {
			return w
		}
	}
	return ""
}

// TestTenantsCreating: every kind of caller, every kind of workspace.
func TestTenantsCreating(t *testing.T) {
	t.Parallel()
	a, b := newTenant(t), newTenant(t)
	var refusal *response
	for _, c := range callers() {
		for _, to := range targets() {
			t.Run(c.name+"/"+to.name, func(t *testing.T) {
				body, named := bodyIn(to.workspace(a, b)), to.workspace(a, b)
				got := post(body).as(c.token(a, b)).do(t)
				want := c.reaches(a, b, named)
				switch {
				case c.reason != "":
					got.because(t, c.reason)
				case !c.manage:
					got.is(t, http.StatusForbidden)
				case want != "":
					if w := got.created(t).Workspace; w != want {
						t.Errorf("created in %s, want %s", w, want)
					}
				case to.name == "malformed workspace":
					got.refuses(t, "/workspace_id")
				default:
					got.refuses(t, "/workspace_id")
					got.alike(t, &refusal)
				}
			})
		}
	}
}

// bodyIn is a body for the workspace, or for none.
func bodyIn(workspace string) string {
	if workspace == "-" {
		return bodyWith("")
	}
	return bodyWith(`,"workspace_id":"` + workspace + `"`)
}

// TestTenantsDeleting: every kind of caller, every kind of workspace, a file in
// each of the owner's workspaces; what was left in a deleted one is out of
// everybody's reach.
func TestTenantsDeleting(t *testing.T) {
	t.Parallel()
	a, b := newTenant(t), newTenant(t)
	var notFound *response
	for _, c := range callers() {
		for _, to := range targets() {
			homes := []string{a.workspace, a.second}
			if to.name == "deleted workspace" {
				homes = []string{a.deleted}
			}
			for _, home := range homes {
				t.Run(c.name+"/"+to.name, func(t *testing.T) {
					file, named := a.file(t, home), to.workspace(a, b)
					q := del(file).as(c.token(a, b))
					if named != "-" {
						q = q.in(named)
					}
					got := q.do(t)
					right := c.reason == "" && c.reaches(a, b, named) == home
					switch {
					case c.reason != "":
						got.because(t, c.reason)
					case right:
						got.is(t, http.StatusOK)
						q.do(t).is(t, http.StatusNotFound).alike(t, &notFound) // already deleted
					default:
						got.is(t, http.StatusNotFound).alike(t, &notFound)
					}
					if a.exists(t, home, file) == right {
						t.Errorf("after the %d the file is there: %v", got.status, !right)
					}
				})
			}
		}
	}
}

// TestAllowedHashes: only keys of one's own account, whatever their state, and
// nobody learns which other hashes exist.
func TestAllowedHashes(t *testing.T) {
	t.Parallel()
	n, other := newTenant(t), newTenant(t)
	gone := n.key(t, standardKey())
	n.remove(t, gone)
	for name, token := range map[string]string{
		"management": n.management, "standard": n.standard, "bound": n.bound, "disabled": n.disabled, "expired": n.expired,
	} {
		t.Run(name, func(t *testing.T) {
			post(bodyFor(token)).as(n.management).do(t).is(t, http.StatusCreated)
		})
	}
	var refusal *response
	for name, token := range map[string]string{
		"foreign": other.standard, "foreign disabled": other.disabled, "unknown": "unknown", "deleted": gone,
	} {
		t.Run(name, func(t *testing.T) {
			got := post(bodyFor(token)).as(n.management).do(t)
			got.refuses(t, "/allowed_api_key_hashes/0")
			got.alike(t, &refusal)
		})
	}
	post(bodyWith(`,"workspace_id":"`+other.workspace+`","allowed_api_key_hashes":["`+hashOf(n.standard)+`","`+hashOf(other.bound)+`"]`)).
		as(n.management).do(t).refuses(t, "/workspace_id", "/allowed_api_key_hashes/1")
}

// bodyFor is a body that only the key may use.
func bodyFor(token string) string {
	return bodyWith(`,"allowed_api_key_hashes":["` + hashOf(token) + `"]`)
}

// TestWithoutDefaultWorkspace: where the default workspace was deleted, what
// names none has nowhere to go.
func TestWithoutDefaultWorkspace(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	bound := n.key(t, standardKey().boundTo(n.second))
	file := n.file(t, n.second)
	n.deleteWorkspace(t, n.workspace)
	post(bodyWith("")).as(n.management).do(t).refuses(t, "/workspace_id")
	if got := post(bodyIn(n.second)).as(n.management).do(t).created(t).Workspace; got != n.second {
		t.Errorf("created in %s", got)
	}
	del(file).as(n.management).do(t).is(t, http.StatusNotFound)
	del(file).as(n.bound).do(t).because(t, "disabled") // with its workspace
	del(file).as(bound).do(t).is(t, http.StatusOK)
}
