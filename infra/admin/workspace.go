package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

type workspaceCommands struct {
	Create  workspaceCreate  `cmd:"" help:"Create a workspace."`
	List    workspaceList    `cmd:"" reads:"" help:"List the account's workspaces, deleted ones included."`
	Show    workspaceShow    `cmd:"" reads:"" help:"Show a workspace with its whole id and its times."`
	Default workspaceDefault `cmd:"" help:"Make a workspace the account's default, which requests that name none use."`
	Delete  workspaceDelete  `cmd:"" help:"Delete a workspace and disable every key bound to it. Repeat it if it was interrupted."`
	Erase   workspaceErase   `cmd:"" help:"Delete a workspace with its credentials, its files and the API keys bound to it. This cannot be undone. Repeat it if it was interrupted."`
	Purge   workspacePurge   `cmd:"" help:"Delete the credentials and files of a deleted workspace. This cannot be undone."`
}

type workspaceCreate struct {
	owner
	Name string `arg:"" help:"The workspace's name."`
}

type workspaceList struct {
	owner
	State string `enum:"live,deleted,broken," default:"" placeholder:"STATE" help:"List those that are live, deleted or broken."`
}

type oneWorkspace struct {
	owner
	ID ids.Workspace `arg:"" name:"workspace" help:"The workspace, or the first 8 characters of its id or more."`
}

type confirmedWorkspace struct {
	oneWorkspace
	confirmation
}

type (
	workspaceDefault struct{ oneWorkspace }
	workspaceShow    struct{ oneWorkspace }
	workspaceDelete  struct{ confirmedWorkspace }
	workspaceErase   struct{ confirmedWorkspace }
	workspacePurge   struct {
		confirmedWorkspace
		DryRun bool `help:"Only list the credentials and files."`
	}
)

type workspaceView struct {
	ID        ids.Workspace   `json:"id" title:"workspace" list:"workspace,short"`
	Name      string          `json:"name" title:"name" list:"name,16"`
	State     string          `json:"state" title:"state"` // live, deleted or broken
	Default   bool            `json:"default" title:"default"`
	CreatedAt output.Optional `json:"created_at" title:"created" list:"age,age"`
	DeletedAt output.Optional `json:"deleted_at" title:"deleted" list:"deleted,age"`
}

func viewWorkspace(w auth.Workspace) workspaceView {
	view := workspaceView{
		ID: w.ID, Name: w.Name, State: "live", Default: w.Default,
		CreatedAt: output.When(w.CreatedAt), DeletedAt: output.When(w.DeletedAt),
	}
	if view.DeletedAt != "" {
		view.State = "deleted"
	}
	if w.Damage != nil {
		view.State = "broken"
	}
	return view
}

func (c workspaceCreate) Run(ctx context.Context, s *session) error {
	id, err := s.registry.CreateWorkspace(ctx, c.Account, c.Name)
	return s.finish(ctx, "workspace.create", err, result{changed{string(id), "live"}, string(id)}, "account", c.Account, "workspace", id)
}

func (c workspaceList) Run(ctx context.Context, s *session) error {
	found, err := s.registry.ListWorkspaces(ctx, c.Account)
	if err != nil {
		return err
	}
	return output.List(s.out, only(each(found, viewWorkspace), c.State, func(v workspaceView) string { return v.State }), "workspace", "name", "state", "default", "age", "deleted")
}

func (c workspaceShow) Run(ctx context.Context, s *session) error {
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err != nil {
		return err
	}
	return output.One(s.out, viewWorkspace(found))
}

func (c workspaceDefault) Run(ctx context.Context, s *session) error {
	_, err := s.registry.FindWorkspace(ctx, c.Account, c.ID) // the write's condition does not see every damage
	if err == nil {
		err = s.registry.SetDefaultWorkspace(ctx, c.Account, c.ID)
	}
	return s.finish(ctx, "workspace.default", err, result{changed{string(c.ID), "default"}, string(c.ID) + " is the default workspace now."},
		"account", c.Account, "workspace", c.ID)
}

func (c workspaceDelete) Run(ctx context.Context, s *session) error {
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err == nil {
		if err := c.begin(ctx, s, found, "workspace.delete", "deletes %s and disables every key bound to it"); err != nil {
			return err
		}
		err = s.registry.DeleteWorkspace(ctx, c.Account, c.ID)
		if err == nil {
			var others []auth.SurveyedKey
			others, err = c.disableKeys(ctx, s)
			err = cmp.Or(err, s.nameLeft(others, errKeysEnabled))
		}
		err = s.orRepeat(err, "the workspace may be deleted, and some of its keys enabled")
	}
	sentence := string(c.ID) + " is deleted, and its keys are disabled. Its credentials and files stay until `workspace purge`."
	return s.finish(ctx, "workspace.delete", err, result{changed{string(c.ID), "deleted"}, sentence}, "account", c.Account, "workspace", c.ID)
}

// begin asks for a confirmation, and notes that the change begins. In the effect, %s stands for
// the workspace.
func (c confirmedWorkspace) begin(ctx context.Context, s *session, w auth.Workspace, action, effect string) error {
	if w.Default {
		s.warn("it is the account's default workspace. Without a default, a request that names no workspace fails: a create with 400, a deletion of a file with 404. `admin workspace default` names another")
	}
	if err := c.confirm(ctx, s, fmt.Sprintf(effect, named("workspace", w.Name, string(c.ID))), w.Name, string(c.ID)); err != nil {
		return err
	}
	return s.begin(ctx, action, "account", c.Account, "workspace", c.ID)
}

// orRepeat adds to an error what was done before it, and that a repetition goes on. No
// repetition mends what is left for the operator.
func (s *session) orRepeat(err error, done string) error {
	if err == nil || !s.changes.command.tried() {
		return err
	}
	if !exit.Is[exit.Findings](err) {
		done += ". Repeat the command: it goes on"
	}
	return &exit.Partial{Err: err, Done: done}
}

const (
	errLive        = exit.Refusal("the workspace is live: delete it first")
	errKeysEnabled = exit.Findings("the workspace is deleted. Keys are not disabled: they are named above. `admin key delete` removes each")
	errKeysLeft    = exit.Findings("everything else is erased. Keys are left: they are named above. `admin key delete` removes each")
)

// disableKeys disables the keys of a deleted workspace that its list lacks. It returns the enabled
// keys that are not the account's.
func (c oneWorkspace) disableKeys(ctx context.Context, s *session) (others []auth.SurveyedKey, err error) {
	bound, err := c.boundKeys(ctx, s)
	if err != nil {
		return nil, err
	}
	_, enabled := split(bound, func(key auth.SurveyedKey) bool { return key.Disabled })
	own, others := split(enabled, func(key auth.SurveyedKey) bool { return key.Account == c.Account })
	_, err = s.changeKeys(ctx, "key.disable", own, s.registry.DisableKey)
	return others, err
}

// deleteKeys deletes the keys of a workspace, except damaged ones, and returns how many.
func (c oneWorkspace) deleteKeys(ctx context.Context, s *session) (int, error) {
	bound, err := c.boundKeys(ctx, s)
	if err != nil {
		return 0, err
	}
	own, others := split(bound, func(key auth.SurveyedKey) bool { return key.Damage == nil && key.Account == c.Account })
	deleted, err := s.changeKeys(ctx, "key.delete", own, s.registry.DeleteKey)
	return deleted, cmp.Or(err, s.nameLeft(others, errKeysLeft))
}

// boundKeys returns the keys whose rows name the workspace, whether or not its list has them, and
// the damaged ones in its list whose rows name none.
func (c oneWorkspace) boundKeys(ctx context.Context, s *session) (bound []auth.SurveyedKey, err error) {
	survey, err := s.readAccess(ctx)
	if err != nil {
		return nil, err
	}
	for hash, key := range sorted(survey.Keys) {
		entry := auth.ItemKey{PK: "workspace#" + string(c.ID), SK: "key#" + string(hash)}
		if key.Workspace == c.ID || key.Workspace == "" && slices.Contains(survey.Unsure, entry) {
			bound = append(bound, key)
		}
	}
	return bound, nil
}

// changeKeys tries a change of each key. It returns how many it changed, and the first failure.
func (s *session) changeKeys(ctx context.Context, action string, keys []auth.SurveyedKey,
	change func(context.Context, ids.Account, ids.KeyHash) error,
) (changed int, failed error) {
	for _, key := range keys {
		s.changes.action.reset()
		err := change(ctx, key.Account, key.Hash)
		if errors.Is(err, auth.ErrNoKey) { // deleted in between
			continue
		}
		s.audit(ctx, action, err, "account", key.Account, "key", key.Hash)
		if err == nil {
			changed++
		}
		failed = cmp.Or(failed, err)
	}
	return changed, failed
}

// nameLeft names keys that were not changed, and returns the finding if there are any.
func (s *session) nameLeft(keys []auth.SurveyedKey, finding exit.Findings) error {
	for _, key := range keys {
		s.warn(fmt.Sprintf("key %s is left: %v", key.Hash, cmp.Or(key.Damage, errors.New("it belongs to another account"))))
	}
	if len(keys) > 0 {
		return finding
	}
	return nil
}

type removal struct {
	Account     ids.Account   `json:"-"`
	ID          ids.Workspace `json:"id"`
	Credentials int           `json:"credentials_removed"`
	Versions    int           `json:"file_versions_removed"`
	Uploads     int           `json:"uploads_aborted"`
	Keys        int           `json:"keys_removed"`
}

// Run removes the credentials and files of a deleted workspace. It deletes the workspace again,
// because an interrupted deletion may have left keys enabled.
func (c workspacePurge) Run(ctx context.Context, s *session) error {
	if c.DryRun {
		return c.preview(ctx, s)
	}
	removed := removal{Account: c.Account, ID: c.ID}
	found, err := c.findDeleted(ctx, s)
	if err == nil {
		if err := c.begin(ctx, s, found, "workspace.purge", "removes for good the credentials and files of %s"); err != nil {
			return err
		}
		err = s.registry.DeleteWorkspace(ctx, c.Account, c.ID)
		if err == nil {
			err = removed.purge(ctx, s, found)
		}
	}
	return removed.report(ctx, s, "workspace.purge", err, "%s is purged: %s removed.")
}

// Run does in one act what a deletion, a purge and deletions of keys do.
func (c workspaceErase) Run(ctx context.Context, s *session) error {
	removed := removal{Account: c.Account, ID: c.ID}
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err == nil {
		if err := c.begin(ctx, s, found, "workspace.erase", "removes for good %s, its credentials, its files and every key bound to it"); err != nil {
			return err
		}
		err = c.erase(ctx, s, &removed)
	}
	return removed.report(ctx, s, "workspace.erase", err, "%s is erased: %s removed. infra/operations/incidents.md says what remains, and until when.")
}

func (c oneWorkspace) erase(ctx context.Context, s *session, removed *removal) error {
	if err := s.registry.DeleteWorkspace(ctx, c.Account, c.ID); err != nil {
		return err
	}
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err != nil {
		return err
	}
	_, failed := c.disableKeys(ctx, s) // first: deleting leaves damaged keys
	err = removed.purge(ctx, s, found)
	keys, failedToo := c.deleteKeys(ctx, s)
	removed.Keys = keys
	return cmp.Or(err, failed, failedToo)
}

func (r removal) report(ctx context.Context, s *session, action string, err error, sentence string) error {
	counts := fmt.Sprintf("%s, %s of files, %s in parts and %s", output.Count(r.Credentials, "credential"), output.Count(r.Versions, "version"),
		output.Count(r.Uploads, "upload"), output.Count(r.Keys, "key"))
	err = s.orRepeat(err, "removed so far: "+counts)
	return s.finish(ctx, action, err, result{r, fmt.Sprintf(sentence, r.ID, counts)}, "account", r.Account, "workspace", r.ID, "credentials_removed", r.Credentials,
		"file_versions_removed", r.Versions, "uploads_aborted", r.Uploads, "keys_removed", r.Keys)
}

func (c oneWorkspace) findDeleted(ctx context.Context, s *session) (auth.Workspace, error) {
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err == nil && found.DeletedAt.IsZero() {
		return auth.Workspace{}, errLive
	}
	return found, err
}

// purgeRow is a credential, a file or an upload in parts that a purge would remove.
type purgeRow struct {
	Kind     string          `json:"kind" title:"kind"`
	ID       string          `json:"id" title:"id" list:"id,short"`
	Name     output.Optional `json:"name" title:"name" list:"name,16"`
	Versions *int64          `json:"versions" title:"versions"`
	Bytes    *int64          `json:"bytes" title:"bytes"`
}

func (c workspacePurge) preview(ctx context.Context, s *session) error {
	if _, err := c.findDeleted(ctx, s); err != nil {
		return err
	}
	credentials, err := s.credentials.List(ctx, c.ID)
	if err != nil {
		return err
	}
	stored, err := s.files.Versions(ctx, c.ID)
	if err != nil {
		return err
	}
	uploads, err := s.files.Uploads(ctx, c.ID)
	if err != nil {
		return err
	}
	var rows []purgeRow
	for _, v := range credentials {
		rows = append(rows, purgeRow{Kind: "credential", ID: string(v.ID), Name: output.Optional(v.Name)})
	}
	for _, v := range stored {
		versions := int64(v.Versions)
		rows = append(rows, purgeRow{Kind: "file", ID: string(v.ID), Versions: &versions, Bytes: &v.Bytes})
	}
	for _, v := range uploads {
		rows = append(rows, purgeRow{Kind: "upload", ID: path.Base(aws.ToString(v.Key))})
	}
	return output.List(s.out, rows, "kind", "id", "name", "versions", "bytes")
}

// requestsEnd is the time after a workspace's deletion during which a request may still store
// a credential in it. A request that was under way counts as before the deletion, and ends
// at the functions' timeout of 10 seconds. Five more seconds allow for clocks that differ,
// and for a deletion time in whole seconds.
const requestsEnd = auth.DeletionDelay + 10*time.Second + 5*time.Second

// purge sweeps at once, and again when the requests from before the deletion have ended. In
// between it aborts uploads in parts. If the right to do that is missing, the rest is removed all
// the same. An upload that was completed meanwhile is a file, which the second sweep removes.
func (r *removal) purge(ctx context.Context, s *session, deleted auth.Workspace) error {
	if err := r.sweep(ctx, s); err != nil {
		return err
	}
	if wait := min(requestsEnd, deleted.DeletedAt.Add(requestsEnd).Sub(s.now())); wait > 0 { // the time may be in the future, by another clock
		s.note("Swept once; sweeping again in %s, when requests that were under way at the deletion have ended.", wait.Round(time.Second))
		if err := s.pause(ctx, wait); err != nil {
			return err
		}
	}
	aborted, err := s.files.AbortUploads(ctx, r.ID)
	r.Uploads += aborted
	return errors.Join(err, r.sweep(ctx, s))
}

// sweep removes the credentials and files and adds them to the count, even if it fails.
func (r *removal) sweep(ctx context.Context, s *session) error {
	credentials, credentialsErr := s.credentials.Purge(ctx, r.ID)
	r.Credentials += credentials
	versions, filesErr := s.files.Purge(ctx, r.ID)
	r.Versions += versions
	return errors.Join(credentialsErr, filesErr)
}
