package main

import (
	"testing"

	"signalbox.dev/infra/testkit/functest"
)

func TestRoundTrips(t *testing.T) {
	v := &vault{functest.New(t, assemble)}
	const (
		key, idem, account = "GetItem key#", "GetItem idem#", "GetItem account#"
		position, dataKey  = "UpdateItem workspace#", "GenerateDataKey"
		hashes             = "BatchGetItem key#"
		put, both          = "PutItem workspace#", "TransactWriteItems workspace#+idem#"
	)
	for _, c := range []struct {
		name   string
		kind   func(*slip)
		inLine int
		calls  []string
	}{
		{"named workspace", (*slip).named, 3, []string{key, position, dataKey, put}},
		{"default workspace", (*slip).plain, 4, []string{key, account, position, dataKey, put}},
		{"allowed API keys", func(s *slip) { s.named(); s.hashes() }, 3, []string{key, position, dataKey, hashes, put}},
		{"idempotency key", func(s *slip) { s.named(); s.once() }, 3, []string{key, idem, position, dataKey, both}},
		{"with everything", func(s *slip) { s.named(); s.everything() }, 3, []string{key, idem, position, dataKey, hashes, both}},
		{"replay", (*slip).again, 1, []string{key, idem}},
		{"key of another request", (*slip).different, 1, []string{key, idem}},
		{"record expired", (*slip).expired, 3, []string{key, idem, position, dataKey, both}},
		{"invalid", (*slip).misspelt, 1, []string{key}},
		{"no default workspace", (*slip).noDefault, 2, []string{key, account}},
		{"foreign workspace", (*slip).foreignWorkspace, 2, []string{key, position, dataKey}},
		{"foreign workspace, idempotency key", func(s *slip) { s.foreignWorkspace(); s.once() }, 3, []string{key, idem, position, dataKey, idem}},
		{"standard key", (*slip).standard, 1, []string{key, idem}},
		{"unknown key", (*slip).unknown, 1, []string{key, idem}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSlip(t, v)
			c.kind(s)
			functest.CheckCost(t, v.Instance().Invoke(t, s.event()), c.inLine, c.calls...)
		})
	}
}
