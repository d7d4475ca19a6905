package main

import (
	"net/http"
	"testing"
	"time"

	"signalbox.dev/infra/sim"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/auth"
)

// The calls of the function.
const (
	key, idem, account = "GetItem key#", "GetItem idem#", "GetItem account#"
	position, dataKey  = "UpdateItem workspace#", "GenerateDataKey"
	hashes             = "BatchGetItem key#"
	workspace, refusal = "GetItem workspace#", "PutItem idem#"
	put, both          = "PutItem workspace#", "TransactWriteItems workspace#+idem#"
)

// TestSimulation plays requests with every fault of every call, and beside each
// other and the operator's acts in every order of their calls.
func TestSimulation(t *testing.T) {
	sim.Suite{Alone: alone(), Pairs: pairs(), Orders: orders(), Crowds: crowds()}.Play(t)
}

func scenario(name string, set func(*sim.World)) sim.Scenario {
	return sim.Scenario{Name: name, Assemble: assemble, Set: set}
}

// named is a request under an idempotency key that names its workspace.
func named(w *sim.World) sim.Create {
	return sim.Create{Workspace: w.Tenant.Workspace, Idempotency: "once"}
}

// other is another request under the same idempotency key.
func other(w *sim.World) sim.Create {
	c := named(w)
	c.Changed = map[string]any{"disabled": true}
	return c
}

func ownHashes(w *sim.World) []string {
	own := string(auth.HashKey(w.Tenant.Management))
	return []string{own, string(auth.HashKey(w.StandardKey(w.Tenant.Workspace))), own}
}

func alone() []sim.Scenario {
	one := func(name string, roundTrips int, calls []string, request func(*sim.World) sim.Create) sim.Scenario {
		s := scenario(name, func(w *sim.World) { w.Create("A", request(w)) })
		s.Calls, s.RoundTrips = calls, roundTrips
		return s
	}
	frozen := one("frozen for an hour", 0, nil, func(*sim.World) sim.Create { return sim.Create{} })
	frozen.Frozen = true
	behind := one("clock behind", 0, nil, func(*sim.World) sim.Create { return sim.Create{} })
	behind.Clock = 10 * time.Minute
	return []sim.Scenario{
		frozen, behind,
		one("default workspace", 4, []string{key, account, position, dataKey, put}, func(*sim.World) sim.Create { return sim.Create{} }),
		one("named workspace", 3, []string{key, position, dataKey, put}, func(w *sim.World) sim.Create {
			return sim.Create{Workspace: w.Tenant.Workspace}
		}),
		one("everything", 3, []string{key, idem, position, dataKey, hashes, both}, func(w *sim.World) sim.Create {
			c := named(w)
			c.Hashes = ownHashes(w)
			return c
		}),
		one("replay", 1, []string{key, idem}, func(w *sim.World) sim.Create {
			w.Created("earlier", named(w))
			return named(w)
		}),
		one("replay without a workspace", 1, []string{key, idem}, func(w *sim.World) sim.Create {
			w.Created("earlier", named(w))
			w.DeletedWorkspace(w.Tenant.Workspace)
			return named(w)
		}),
		one("record expired", 3, []string{key, idem, position, dataKey, both}, func(w *sim.World) sim.Create {
			w.Created("earlier", named(w))
			w.Expire("once")
			return named(w)
		}),
		one("another request", 1, []string{key, idem}, func(w *sim.World) sim.Create {
			w.Created("earlier", named(w))
			return other(w)
		}),
		one("refused before, now there is room", 0, nil, func(w *sim.World) sim.Create {
			c := named(w)
			old := w.Created("old", sim.Create{Workspace: w.Tenant.Workspace, Most: 1})
			c.Most = 1
			w.Wait(30 * time.Second)
			w.Refused("earlier", c)
			w.DeletedCredential(old)
			w.Wait(31 * time.Second)
			return c
		}),
		one("a full workspace is counted", 0, nil, func(w *sim.World) sim.Create {
			c := sim.Create{Workspace: w.Tenant.Workspace, Most: 1}
			w.DeletedCredential(w.Created("old", c))
			w.Wait(2 * time.Minute)
			return c
		}),
		one("unknown member", 1, []string{key}, func(*sim.World) sim.Create {
			return sim.Create{Changed: map[string]any{testkit.Marker + "models": "x"}, Never: http.StatusBadRequest}
		}),
		one("unknown API key in the list", 3, []string{key, account, position, dataKey, hashes}, func(w *sim.World) sim.Create {
			return sim.Create{Hashes: []string{string(auth.HashKey(w.Tenant.Management)), w.UnknownHash()}}
		}),
		one("deleted workspace", 4, []string{key, idem, position, workspace, dataKey, refusal}, func(w *sim.World) sim.Create {
			w.DeletedWorkspace(w.Tenant.Workspace)
			return named(w)
		}),
		one("no default workspace", 2, []string{key, account}, func(w *sim.World) sim.Create {
			w.DeletedWorkspace(w.Tenant.Workspace)
			return sim.Create{}
		}),
		one("standard key", 1, []string{key, idem}, func(w *sim.World) sim.Create {
			c := named(w)
			c.Token, c.Never = w.StandardKey(""), http.StatusForbidden
			return c
		}),
		one("unknown key", 1, []string{key, idem}, func(w *sim.World) sim.Create {
			c := named(w)
			c.Token = w.UnknownKey()
			return c
		}),
	}
}

func pairs() []sim.Scenario {
	against := func(act func(*sim.World), request func(*sim.World) sim.Create) func(*sim.World) {
		return func(w *sim.World) {
			w.Create("A", request(w))
			act(w)
		}
	}
	deletion := func(w *sim.World) { w.DeleteWorkspace("delete workspace", w.Tenant.Workspace) }
	revocation := func(w *sim.World) { w.RevokeKey("revoke key", w.Tenant.Management) }
	plain := func(*sim.World) sim.Create { return sim.Create{} }
	return []sim.Scenario{
		scenario("the same request twice", func(w *sim.World) {
			w.Create("A", named(w))
			w.Create("B", named(w))
		}),
		scenario("two requests under one idempotency key", func(w *sim.World) {
			w.Create("A", named(w))
			w.Create("B", other(w))
		}),
		scenario("two requests", func(w *sim.World) {
			w.Create("A", sim.Create{Workspace: w.Tenant.Workspace})
			w.Create("B", sim.Create{Workspace: w.Tenant.Workspace})
		}),
		scenario("two requests for the last place", func(w *sim.World) {
			c := sim.Create{Workspace: w.Tenant.Workspace, Most: 1}
			w.Create("A", c)
			w.Create("B", c)
		}),
		scenario("the same request twice for the last place", func(w *sim.World) {
			c := named(w)
			c.Most = 1
			w.Create("A", c)
			w.Create("B", c)
		}),
		scenario("two requests, record expired", func(w *sim.World) {
			w.Created("earlier", named(w))
			w.Expire("once")
			w.Create("A", named(w))
			w.Create("B", named(w))
		}),
		scenario("delete a credential of a full workspace", func(w *sim.World) {
			old := w.Credential("old")
			w.Create("A", sim.Create{Workspace: w.Tenant.Workspace, Most: 1})
			w.DeleteCredential("delete credential", old)
		}),
		scenario("delete workspace", against(deletion, func(w *sim.World) sim.Create { return sim.Create{Workspace: w.Tenant.Workspace} })),
		scenario("delete default workspace", against(deletion, plain)),
		scenario("delete workspace, idempotency key", against(deletion, named)),
		scenario("revoke key", against(revocation, named)),
		scenario("repair after a restore", func(w *sim.World) {
			w.Credential("old")
			w.Restore()
			w.Create("A", sim.Create{Workspace: w.Tenant.Workspace})
			w.Repair("repair")
		}),
		scenario("delete a listed key", func(w *sim.World) {
			token := w.StandardKey("")
			w.Create("A", sim.Create{Workspace: w.Tenant.Workspace, Hashes: []string{string(auth.HashKey(token))}})
			w.DeleteKey("delete key", token)
		}),
	}
}

func orders() []sim.Scenario {
	return []sim.Scenario{
		scenario("purge workspace", func(w *sim.World) {
			w.Credential("old")
			w.Create("A", sim.Create{Workspace: w.Tenant.Workspace})
			w.PurgeWorkspace("purge workspace")
		}),
		scenario("the same request twice, workspace deleted", func(w *sim.World) {
			w.Create("A", named(w))
			w.Create("B", named(w))
			w.DeleteWorkspace("delete workspace", w.Tenant.Workspace)
		}),
		scenario("the same request twice, listed key deleted", func(w *sim.World) {
			token := w.StandardKey("")
			c := named(w)
			c.Hashes = []string{string(auth.HashKey(token))}
			w.Create("A", c)
			w.Create("B", c)
			w.DeleteKey("delete key", token)
		}),
	}
}

func crowds() []sim.Scenario {
	return []sim.Scenario{
		scenario("the same request three times", func(w *sim.World) {
			w.Create("A", named(w))
			w.Create("B", named(w))
			w.Create("C", other(w))
		}),
		scenario("three requests, key revoked", func(w *sim.World) {
			w.Create("A", sim.Create{})
			w.Create("B", sim.Create{Workspace: w.Tenant.Workspace})
			w.Create("C", named(w))
			w.RevokeKey("revoke key", w.Tenant.Management)
		}),
		scenario("supersede while created", func(w *sim.World) {
			old, successor := w.Credential("old"), w.Credential("successor")
			w.Create("A", named(w))
			w.Supersede("supersede", old, successor)
			w.DisableCredential("disable", successor)
			w.DeleteCredential("delete", old)
		}),
	}
}
