package history

import (
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// Each history of operations, one after the other, is forbidden by the contract.
// Without its last operation it is allowed.
func TestForbiddenHistoriesAreRefused(t *testing.T) {
	for name, history := range map[string][]event{
		"a revoked key lets in":               {keyLetIn("k"), keySet("k", true), keyLetIn("k")},
		"a good key is refused":               {keySet("k", true), keySet("k", false), keyRefused("k")},
		"a create after the deletion":         {workspaceLive("w"), workspaceDeleted("w"), workspaceLive("w")},
		"a workspace is gone before its time": {workspaceLive("w"), workspaceGone("w")},
		"a position after the deletion":       {positionTaken("w", "p", 0), positionsClosed("w", "p"), positionTaken("w", "p", 1)},
		"a position twice":                    {positionTaken("w", "p", 0), positionTaken("w", "p", 3), positionTaken("w", "p", 3)},
		"a position backwards":                {positionTaken("w", "p", 3), positionTaken("w", "p", 2)},
		"a stale default":                     {defaultSet("a", "v"), defaultSet("a", "w"), defaultIs("a", "v")},
		"a deleted default":                   {defaultSet("a", "v"), defaultCleared("a", "w"), defaultIs("a", "v"), defaultCleared("a", "v"), defaultIs("a", "v")},
		"one request twice":                   {onceFirst("o", "r", "1"), onceReplayed("o", "r", "1"), onceFirst("o", "r", "2")},
		"a replay of nothing":                 {onceRefused("o", "r"), onceReplayed("o", "r", "1")},
		"a replay of another":                 {onceFirst("o", "r", "1"), onceOther("o", "q"), onceReplayed("o", "q", "1")},
		"a replay that changed":               {onceFirst("o", "r", "1"), onceReplayed("o", "r", "2")},
		"a memory lost":                       {onceFirst("o", "r", "1"), onceRefused("o", "r")},
		"a lost memory, found otherwise":      {oncePerhaps("o", "r"), onceReplayed("o", "r", "1"), onceEither("o", "r", "2")},
		"refused for itself":                  {onceFirst("o", "r", "1"), onceOther("o", "r")},
		"a credential twice":                  {credentialStored("c", "1"), credentialStored("c", "2")},
		"a credential lost":                   {credentialSeen("c", ""), credentialStored("c", "1"), credentialSeen("c", "")},
		"a credential changed":                {credentialStored("c", "1"), credentialSeen("c", "1"), credentialSeen("c", "2")},
		"a credential from nowhere":           {credentialSeen("c", ""), credentialSeen("c", "1")},
		"a lost credential comes and goes":    {credentialPerhaps("c"), credentialSeen("c", "1"), credentialSeen("c", "")},
		"a file twice deleted":                {fileUploaded("f"), fileDeleted("f"), fileDeleted("f")},
		"a file written over":                 {fileUploaded("f"), fileUploaded("f")},
		"a file that comes back":              {fileUploaded("f"), fileDeleted("f"), fileSeen("f", false), fileSeen("f", true)},
		"a file lost":                         {filePerhapsUploaded("f"), fileSeen("f", true), fileSeen("f", false)},
		"a file deleted all the same":         {filePerhapsDeleted("f"), fileDeleted("f")},
		"a job goes back":                     {jobSeen("j", "queued"), jobMoved("j", "queued", "running"), jobSeen("j", "queued")},
		"a job starts twice":                  {jobMoved("j", "queued", "running"), jobMoved("j", "queued", "running")},
		"a job is kept from a step":           {jobKept("j", "running"), jobKept("j", "queued")},
		"a job skips a state":                 {jobPerhapsMoved("j", "running", "succeeded"), jobSeen("j", "succeeded")},
	} {
		t.Run(name, func(t *testing.T) {
			if allowed(inOrder(history)) {
				t.Error("it is allowed")
			}
			if before := history[:len(history)-1]; len(before) > 0 && !allowed(inOrder(before)) {
				t.Error("it is refused before its last operation")
			}
		})
	}
}

// Operations that overlap may have happened in either order.
func TestOverlappingOperationsAreAllowed(t *testing.T) {
	for name, history := range map[string][]event{
		"a create and its workspace's deletion": {workspaceDeleted("w"), workspaceLive("w")},
		"a request and its key's revocation":    {keySet("k", true), keyLetIn("k"), keyRefused("k")},
		"a store and a look":                    {credentialStored("c", "1"), credentialSeen("c", "")},
		"two deletions of one file":             {fileSeen("f", false), fileDeleted("f"), fileUploaded("f")},
	} {
		t.Run(name, func(t *testing.T) {
			all := inOrder(history)
			for i := range all {
				all[i].Call, all[i].Return = 0, 1
			}
			for range 2 {
				if !allowed(all) {
					t.Error("it is refused")
				}
				slices.Reverse(all)
			}
		})
	}
}

func allowed(history []porcupine.Operation) bool { return porcupine.CheckOperations(model(), history) }

func inOrder(history []event) []porcupine.Operation {
	all := make([]porcupine.Operation, len(history))
	for i, e := range history {
		all[i] = porcupine.Operation{Input: e, Call: int64(2 * i), Return: int64(2*i + 1)}
	}
	return all
}
