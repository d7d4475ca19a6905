package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// event is what one operation showed of one object: whether the object's state
// allows it, and the state after it.
type event struct {
	object, text string
	step         func(state any) (allowed bool, next any)
}

// on makes an event of an object whose states are of type S, at first its zero
// value.
func on[S comparable](object, text string, step func(S) (allowed bool, next S)) event {
	return event{object, text, func(state any) (bool, any) {
		s, _ := state.(S) // nil at first
		return step(s)
	}}
}

// shows makes an event that changes nothing.
func shows[S comparable](object, text string, allowed func(S) bool) event {
	return on(object, text, func(s S) (bool, S) { return allowed(s), s })
}

// sets makes an event that is always allowed.
func sets[S comparable](object, text string, next func(S) S) event {
	return on(object, text, func(s S) (bool, S) { return true, next(s) })
}

// model requires each object to be linearizable: as if every operation on it had
// happened at one instant between its beginning and its end. An operation on
// several objects (a create uses its key, workspace, idempotency key and
// credential) has an instant for each: the contract promises no more where it
// says that a create which overlaps its workspace's deletion counts as before it.
func model() porcupine.Model {
	return porcupine.Model{
		Partition:         byObject,
		Init:              func() any { return nil },
		Step:              func(state, input, _ any) (bool, any) { return observed(input).step(state) },
		DescribeOperation: func(input, _ any) string { return observed(input).text },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

func observed(input any) event {
	e, _ := input.(event) // always one
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

// unknown is the credential of a create without a response.
const unknown = "?"

// A state is a bool or a text where that is enough. API keys: disabled.

func keyLetIn(k string) event {
	return shows("key "+k, "let in", func(disabled bool) bool { return !disabled })
}

func keyRefused(k string) event {
	return shows("key "+k, "refused", func(disabled bool) bool { return disabled })
}

func keySet(k string, disabled bool) event {
	return sets("key "+k, fmt.Sprintf("disabled=%t", disabled), func(bool) bool { return disabled })
}

// Workspaces: deleted.

func workspaceLive(w string) event {
	return shows("workspace "+w, "is live", func(deleted bool) bool { return !deleted })
}

func workspaceGone(w string) event {
	return shows("workspace "+w, "is gone", func(deleted bool) bool { return deleted })
}

func workspaceDeleted(w string) event {
	return sets("workspace "+w, "delete", func(bool) bool { return true })
}

// Positions of one workspace and provider are given out in rising order, with
// gaps, and none once the workspace is deleted.
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
	return sets("positions "+w+" "+provider, "close", func(s positions) positions { return positions{true, s.next} })
}

// The default workspace of an account.

func defaultIs(account, w string) event {
	return shows("default "+account, "is "+w, func(s string) bool { return s == w })
}

func defaultSet(account, w string) event {
	return sets("default "+account, "set to "+w, func(string) string { return w })
}

func defaultCleared(account, w string) event {
	return sets("default "+account, "cleared of "+w, func(s string) string {
		if s == w {
			return ""
		}
		return s
	})
}

// An idempotency key belongs to the first request that succeeds under it. A refused
// request holds it against others that are under way.
type memory struct{ request, credential, refused string }

func (m memory) isFree() bool { return m.request == "" }

func (m memory) replays(request, credential string) bool {
	return m.request == request && (m.credential == credential || m.credential == unknown)
}

func onceFirst(k, request, credential string) event {
	return on("once "+k, request+" makes "+credential, func(s memory) (bool, memory) {
		return s.isFree(), memory{request: request, credential: credential}
	})
}

func onceReplayed(k, request, credential string) event {
	return on("once "+k, request+" replays "+credential, func(s memory) (bool, memory) {
		return s.replays(request, credential), memory{request: request, credential: credential}
	})
}

// onceEither is a replay, perhaps of the request's own first attempt.
func onceEither(k, request, credential string) event {
	return on("once "+k, request+" makes or replays "+credential, func(s memory) (bool, memory) {
		return s.replays(request, credential) || s.isFree(), memory{request: request, credential: credential}
	})
}

func onceOther(k, request string) event {
	return shows("once "+k, request+" is another", func(s memory) bool {
		return !s.isFree() && s.request != request || s.refused != "" && s.refused != request
	})
}

// onceRefused is a request that storage refused: nothing was created under the key.
func onceRefused(k, request string) event {
	return on("once "+k, request+" is refused", func(s memory) (bool, memory) {
		return s.isFree(), memory{refused: request}
	})
}

// oncePerhaps is a create without a response.
func oncePerhaps(k, request string) event {
	return sets("once "+k, request+", perhaps", func(s memory) memory {
		if s.isFree() {
			return memory{request: request, credential: unknown}
		}
		return s
	})
}

// Credentials, by name: the one stored, "" before.

func credentialStored(name, id string) event {
	return on("credential "+name, "store "+id, func(s string) (bool, string) { return s == "", id })
}

func credentialPerhaps(name string) event {
	return sets("credential "+name, "perhaps stored", func(s string) string { return cmp.Or(s, unknown) })
}

// credentialSeen is what a list shows, "" for nothing.
func credentialSeen(name, id string) event {
	return on("credential "+name, fmt.Sprintf("is %q", id), func(s string) (bool, string) {
		return s == id || s == unknown && id != "", id
	})
}

// Files: whether they exist.

func fileUploaded(f string) event {
	return on("file "+f, "upload", func(exists bool) (bool, bool) { return !exists, true })
}

// filePerhapsUploaded is an upload that found a file, perhaps its own.
func filePerhapsUploaded(f string) event {
	return sets("file "+f, "perhaps upload", func(bool) bool { return true })
}

func fileDeleted(f string) event {
	return on("file "+f, "delete", func(exists bool) (bool, bool) { return exists, false })
}

func filePerhapsDeleted(f string) event {
	return sets("file "+f, "perhaps delete", func(bool) bool { return false })
}

func fileSeen(f string, seen bool) event {
	return shows("file "+f, fmt.Sprintf("exists=%t", seen), func(exists bool) bool { return exists == seen })
}

// Sync jobs: their status. They go from queued to running to succeeded.

func status(s string) string { return cmp.Or(s, "queued") }

func jobMoved(id, from, to string) event {
	return on("job "+id, "to "+to, func(s string) (bool, string) { return status(s) == from, to })
}

func jobPerhapsMoved(id, from, to string) event {
	return sets("job "+id, "perhaps to "+to, func(s string) string {
		if status(s) == from {
			return to
		}
		return s
	})
}

func jobKept(id, from string) event {
	return shows("job "+id, "is not "+from, func(s string) bool { return status(s) != from })
}

func jobSeen(id, seen string) event {
	return shows("job "+id, "is "+seen, func(s string) bool { return status(s) == seen })
}
