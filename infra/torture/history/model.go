package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// event is what one operation shows of one object: whether it could have come to
// its outcome in that state of the object, and the state after it.
type event struct {
	object, text string
	step         func(state any) (legal bool, next any)
}

// on makes an event of an object whose states are of type S, the zero value at
// first.
func on[S comparable](object, text string, step func(S) (legal bool, next S)) event {
	return event{object, text, func(state any) (bool, any) {
		s, _ := state.(S) // nil is the beginning
		return step(s)
	}}
}

// model holds each object to be linearizable: as if every operation on it had
// happened at one instant between its beginning and its end. An operation that
// touches several objects, as a create touches its key, its workspace, its
// idempotency key and its credential, does so at an instant of its own for each:
// that is what the contract promises where it says that a create which overlaps
// its workspace's deletion counts as before it, and no more.
func model() porcupine.Model {
	return porcupine.Model{
		Partition: byObject,
		Init:      func() any { return nil },
		Step: func(state, input, _ any) (bool, any) {
			return observed(input).step(state)
		},
		DescribeOperation: func(input, _ any) string { return observed(input).text },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

// observed is the event that an operation of ours always holds.
func observed(input any) event {
	e, _ := input.(event)
	return e
}

func byObject(all []porcupine.Operation) [][]porcupine.Operation {
	objects := make(map[string][]porcupine.Operation)
	for _, o := range all {
		name := observed(o.Input).object
		objects[name] = append(objects[name], o)
	}
	parts := make([][]porcupine.Operation, 0, len(objects))
	for _, part := range objects {
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b []porcupine.Operation) int {
		return cmp.Compare(observed(a[0].Input).object, observed(b[0].Input).object)
	})
	return parts
}

// An API key lets in unless it is disabled.
type key struct{ disabled bool }

func keyLetIn(k string) event {
	return on("key "+k, "let in", func(s key) (bool, key) { return !s.disabled, s })
}

func keyRefused(k string) event {
	return on("key "+k, "refused", func(s key) (bool, key) { return s.disabled, s })
}

func keySet(k string, disabled bool) event {
	return on("key "+k, fmt.Sprintf("disabled=%t", disabled), func(key) (bool, key) { return true, key{disabled} })
}

// A workspace is live until it is deleted.
type workspace struct{ deleted bool }

func workspaceLive(w string) event {
	return on("workspace "+w, "is live", func(s workspace) (bool, workspace) { return !s.deleted, s })
}

func workspaceGone(w string) event {
	return on("workspace "+w, "is gone", func(s workspace) (bool, workspace) { return s.deleted, s })
}

func workspaceDeleted(w string) event {
	return on("workspace "+w, "delete", func(workspace) (bool, workspace) { return true, workspace{true} })
}

// Positions of one workspace and provider are given out upwards, gaps allowed,
// and none once the workspace is deleted.
type positions struct {
	closed bool
	next   int64
}

func positionTaken(w, provider string, position int64) event {
	return on("positions "+w+" "+provider, fmt.Sprintf("take %d", position), func(s positions) (bool, positions) {
		return !s.closed && position >= s.next, positions{next: position + 1}
	})
}

func positionsClosed(w, provider string) event {
	return on("positions "+w+" "+provider, "close", func(s positions) (bool, positions) {
		return true, positions{true, s.next}
	})
}

// The default workspace of an account is set, and cleared when it is deleted.
func defaultIs(account, w string) event {
	return on("default "+account, "is "+w, func(s string) (bool, string) { return s == w, s })
}

func defaultSet(account, w string) event {
	return on("default "+account, "set to "+w, func(string) (bool, string) { return true, w })
}

func defaultCleared(account, w string) event {
	return on("default "+account, "cleared of "+w, func(s string) (bool, string) {
		if s == w {
			s = ""
		}
		return true, s
	})
}
