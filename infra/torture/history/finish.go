package history

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// finish repeats what may be repeated, which must end as if nothing had been
// killed, and then reads all that is stored.
func (r *round) finish(t testing.TB) {
	t.Helper()
	last := &actor{round: r, number: clients}
	last.stack, last.ctx = r.service.Stack()
	for k := range keys {
		for number := range onceKeys {
			last.createOnce(k, number, 0)
		}
	}
	for w, workspace := range r.workspaces {
		last.list(w)
		last.open(t, workspace)
	}
	// Each listing showed every credential that might have been there.
	for _, l := range r.listings {
		for name, workspace := range r.workspaceOf {
			if workspace == l.workspace {
				r.note(l.client, l.call, l.end, credentialSeen(name, l.found[name]))
			}
		}
	}
	for _, f := range r.files {
		last.head(f)
		for last.deleteAs(r.spare, f) == http.StatusTooManyRequests {
		}
		if !r.deleting[f.workspace].Load() {
			last.findNothing(t, f)
		}
	}
}

// open opens every credential of a workspace: each was asked for, and has the key
// that was sent.
func (x *actor) open(t testing.TB, w ids.Workspace) {
	t.Helper()
	rows := testkit.Rows{DB: x.stack.DynamoDB, Table: x.stack.Credentials}.Of(t, "workspace#"+string(w))
	opener := seal.NewOpener(x.stack.KMS, x.stack.SealingKey)
	for _, c := range testkit.Credentials(t, rows) {
		c.Account, c.Workspace = x.account.ID, w // where it must have been sealed
		plain, err := c.Open(x.ctx, opener)
		if err != nil || string(plain.Reveal()) != secretOf(c.Name) {
			x.violation("%s does not open, or not to the key that was sent: %v", c.Name, err)
			continue
		}
		plain.Wipe()
		x.count(&x.Opened)
		if _, asked := x.workspaceOf[c.Name]; !asked {
			x.violation("%s is stored and was never asked for", c.Name)
		}
	}
}

// findNothing checks that neither a version of a deleted file is left nor a marker.
func (x *actor) findNothing(t testing.TB, f fileAt) {
	t.Helper()
	if left := x.stack.Bucket().Look(t, x.objectKey(f)).Left; left > 0 {
		x.violation("%s was deleted, and %d versions of it are left", f.id, left)
	}
}
