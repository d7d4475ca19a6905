package acts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

const (
	errLive     = Refusal("the workspace is live: delete it first")
	errKeysLeft = Findings("the rest is done. Keys are left as they were: they are named above. `admin key delete` removes each")
)

// FindDeleted finds a workspace of the account, and refuses a live one.
func (s *Stack) FindDeleted(ctx context.Context, account ids.Account, id ids.Workspace) (auth.Workspace, error) {
	found, err := s.Registry.FindWorkspace(ctx, account, id)
	if err == nil && found.DeletedAt.IsZero() {
		return auth.Workspace{}, errLive
	}
	return found, err
}

// DeleteWorkspace deletes a workspace and disables the keys that are bound to it. It names enabled
// keys that another account has.
func (s *Stack) DeleteWorkspace(ctx context.Context, account ids.Account, id ids.Workspace) error {
	return s.DoAll(ctx, "workspace.delete", []any{"account", account, "workspace", id}, func(ctx context.Context) error {
		err := s.Registry.DeleteWorkspace(ctx, account, id)
		if err == nil {
			var bound []auth.Key
			bound, err = s.Registry.ListBoundKeys(ctx, id)
			_, others := Split(bound, func(key auth.Key) bool { return key.Disabled })
			err = cmp.Or(err, s.nameLeft(others))
		}
		return OrRepeat(ctx, err, "the workspace may be deleted, and some of its keys enabled")
	})
}

// Removed counts the parts of a workspace that were removed.
type Removed struct {
	Credentials int `json:"credentials_removed"`
	Versions    int `json:"file_versions_removed"`
	Uploads     int `json:"uploads_aborted"`
	Keys        int `json:"keys_removed"`
}

func (r Removed) String() string {
	return fmt.Sprintf("%s, %s of files, %s in parts and %s", Count(r.Credentials, "credential"), Count(r.Versions, "version"), Count(r.Uploads, "upload"), Count(r.Keys, "key"))
}

// PurgeWorkspace removes the credentials and files of a deleted workspace, see FindDeleted. It
// returns its counts, also with an error.
//
// It deletes the workspace again first, because an interrupted deletion may have left keys enabled.
func (s *Stack) PurgeWorkspace(ctx context.Context, account ids.Account, deleted auth.Workspace) (Removed, error) {
	return s.remove(ctx, "workspace.purge", account, deleted.ID, func(ctx context.Context, r *Removed) error {
		if err := s.Registry.DeleteWorkspace(ctx, account, deleted.ID); err != nil {
			return err
		}
		return r.purge(ctx, s, deleted)
	})
}

// EraseWorkspace is a deletion, a purge and the deletion of the keys in one act. It returns its
// counts, also with an error. It leaves damaged keys, which the deletion has disabled.
func (s *Stack) EraseWorkspace(ctx context.Context, account ids.Account, id ids.Workspace) (Removed, error) {
	return s.remove(ctx, "workspace.erase", account, id, func(ctx context.Context, r *Removed) error {
		if err := s.Registry.DeleteWorkspace(ctx, account, id); err != nil {
			return err
		}
		found, err := s.Registry.FindWorkspace(ctx, account, id)
		if err != nil {
			return err
		}
		err = r.purge(ctx, s, found)
		keys, failed := s.deleteKeys(ctx, account, id)
		r.Keys = keys
		return cmp.Or(err, failed)
	})
}

// remove runs a removal, and counts it in the audit line and in an error.
func (s *Stack) remove(ctx context.Context, action string, account ids.Account, id ids.Workspace, run func(context.Context, *Removed) error) (Removed, error) {
	r := &Removed{}
	attrs := []any{"account", account, "workspace", id, "credentials_removed", &r.Credentials, "file_versions_removed", &r.Versions, "uploads_aborted", &r.Uploads, "keys_removed", &r.Keys}
	err := s.DoAll(ctx, action, attrs, func(ctx context.Context) error {
		err := run(ctx, r)
		return OrRepeat(ctx, err, "removed so far: "+r.String())
	})
	return *r, err
}

// deleteKeys deletes the keys of a workspace, except damaged ones, and returns how many.
func (s *Stack) deleteKeys(ctx context.Context, account ids.Account, id ids.Workspace) (int, error) {
	bound, err := s.Registry.ListBoundKeys(ctx, id)
	if err != nil {
		return 0, err
	}
	own, others := Split(bound, func(key auth.Key) bool { return key.Damage == nil && key.Account == account })
	deleted, err := s.changeKeys(ctx, "key.delete", own, func(ctx context.Context, key auth.Key) error {
		return s.Registry.DeleteKey(ctx, account, key.Hash)
	})
	return deleted, cmp.Or(err, s.nameLeft(others))
}

// nameLeft names keys that were not changed, and returns a finding if there are any.
func (s *Stack) nameLeft(keys []auth.Key) error {
	for _, key := range keys {
		s.Warn(fmt.Sprintf("key %s is left: %v", key.Hash, cmp.Or(key.Damage, errors.New("it belongs to another account"))))
	}
	if len(keys) > 0 {
		return errKeysLeft
	}
	return nil
}

// RequestsEnd is the time after a workspace's deletion during which a request may still store
// a credential in it. A request that was under way counts as before the deletion, and ends
// at the functions' timeout of 10 seconds. Five more seconds allow for clocks that differ,
// and for a deletion time in whole seconds.
const RequestsEnd = auth.DeletionDelay + 10*time.Second + 5*time.Second

// purge sweeps at once, and again when the requests from before the deletion have ended. In
// between it aborts uploads in parts. If the right to do that is missing, the rest is removed all
// the same. An upload that was completed meanwhile is a file, which the second sweep removes.
func (r *Removed) purge(ctx context.Context, s *Stack, deleted auth.Workspace) error {
	if err := r.sweep(ctx, s, deleted.ID); err != nil {
		return err
	}
	if wait := min(RequestsEnd, deleted.DeletedAt.Add(RequestsEnd).Sub(s.Now())); wait > 0 { // the time may be in the future, by another clock
		s.Note("Swept once; sweeping again in %s, when requests that were under way at the deletion have ended.", wait.Round(time.Second))
		if err := s.Pause(ctx, wait); err != nil {
			return err
		}
	}
	aborted, err := s.Files.AbortUploads(ctx, deleted.ID)
	r.Uploads += aborted
	return errors.Join(err, r.sweep(ctx, s, deleted.ID))
}

// sweep removes the credentials and files and adds them to the count, even if it fails.
func (r *Removed) sweep(ctx context.Context, s *Stack, w ids.Workspace) error {
	credentials, credentialsErr := s.Credentials.Purge(ctx, w)
	r.Credentials += credentials
	versions, filesErr := s.Files.Purge(ctx, w)
	r.Versions += versions
	return errors.Join(credentialsErr, filesErr)
}
