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

// oneWorkspace is the workspace of a command.
type oneWorkspace struct {
	owner
	ID ids.Workspace `arg:"" name:"workspace" help:"The workspace, or the first 8 characters of its id or more."`
}

type (
	workspaceDefault struct{ oneWorkspace }
	workspaceShow    struct{ oneWorkspace }
	workspaceDelete  struct {
		oneWorkspace
		confirmation
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
	if w.Fault != nil {
		view.State = "broken"
	}
	return view
}

// Run makes a workspace.
func (c workspaceCreate) Run(ctx context.Context, s *session) error {
	id, err := s.registry.CreateWorkspace(ctx, c.Account, c.Name)
	return s.finish(ctx, "workspace.create", err, changed{string(id), "live"}, string(id), "account", c.Account, "workspace", id)
}

// Run lists workspaces.
func (c workspaceList) Run(ctx context.Context, s *session) error {
	found, err := s.registry.ListWorkspaces(ctx, c.Account)
	if err != nil {
		return err
	}
	return output.List(s.out, only(each(found, viewWorkspace), c.State, func(v workspaceView) string { return v.State }), "workspace", "name", "state", "default", "age", "deleted")
}

// Run shows a workspace.
func (c workspaceShow) Run(ctx context.Context, s *session) error {
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err != nil {
		return err
	}
	return output.One(s.out, viewWorkspace(found))
}

// Run changes the default workspace.
func (c workspaceDefault) Run(ctx context.Context, s *session) error {
	err := s.registry.SetDefaultWorkspace(ctx, c.Account, c.ID)
	return s.finish(ctx, "workspace.default", err, changed{string(c.ID), "default"}, string(c.ID)+" is the default workspace now.",
		"account", c.Account, "workspace", c.ID)
}

// Run deletes a workspace.
func (c workspaceDelete) Run(ctx context.Context, s *session) error {
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err == nil {
		s.warnOfDefault(found)
		effect := "deletes " + named("workspace", found.Name, string(c.ID)) + " and disables every key bound to it"
		if err := c.confirm(ctx, s, effect, found.Name, string(c.ID)); err != nil {
			return err
		}
		if err := s.begin(ctx, "workspace.delete", "account", c.Account, "workspace", c.ID); err != nil {
			return err
		}
		err = s.registry.DeleteWorkspace(ctx, c.Account, c.ID)
		if err == nil {
			err = s.disableBoundKeys(ctx, c.Account, c.ID)
		}
		err = s.orRepeat(err, "the workspace may be deleted, and some of its keys enabled")
	}
	return s.finish(ctx, "workspace.delete", err, changed{string(c.ID), "deleted"},
		string(c.ID)+" is deleted, and its keys are disabled. Its credentials and files stay until `workspace purge`.",
		"account", c.Account, "workspace", c.ID)
}

// disableBoundKeys disables the keys of a deleted workspace that its list lacks, and damaged ones.
// It names the keys that it leaves: those of another account, or of none.
func (s *session) disableBoundKeys(ctx context.Context, account ids.Account, id ids.Workspace) error {
	survey, err := auth.ReadSurvey(ctx, s.db, s.target.Outputs.AccessTableName)
	if err != nil {
		return err
	}
	var left error
	for _, key := range boundKeys(survey, id) {
		switch {
		case key.Disabled:
			continue
		case key.Account != account:
			s.warn(fmt.Sprintf("key %s is left: %v", key.Hash, cmp.Or(key.Fault, error(errOtherAccount))))
			left = errKeysEnabled
			continue
		}
		s.changes.action.reset()
		disableErr := s.registry.DisableKey(ctx, account, key.Hash)
		if errors.Is(disableErr, auth.ErrNoKey) { // deleted in between
			continue
		}
		s.audit(ctx, "key.disable", disableErr, "account", account, "key", key.Hash)
		err = cmp.Or(err, disableErr)
	}
	return cmp.Or(err, left)
}

// boundKeys returns the keys whose rows name the workspace, whether or not its list has them, and
// the damaged ones in its list whose rows name none.
func boundKeys(survey *auth.Survey, id ids.Workspace) (bound []auth.SurveyedKey) {
	for hash, key := range sorted(survey.Keys) {
		entry := auth.ItemKey{PK: "workspace#" + string(id), SK: "key#" + string(hash)}
		if key.Workspace == id || key.Workspace == "" && slices.Contains(survey.Unsure, entry) {
			bound = append(bound, key)
		}
	}
	return bound
}

func (s *session) warnOfDefault(w auth.Workspace) {
	if w.Default {
		s.warn("it is the account's default workspace. Without a default, a request that names no workspace fails: a create with 400, a deletion of a file with 404. `admin workspace default` names another")
	}
}

// orRepeat adds to an error what was done before it, and that a repetition goes on. No
// repetition mends what is left for the operator.
func (s *session) orRepeat(err error, done string) error {
	if err == nil || !s.changes.command.tried() {
		return err
	}
	if _, ok := errors.AsType[exit.Findings](err); !ok {
		done += ". Repeat the command: it goes on"
	}
	return &exit.Partial{Err: err, Done: done}
}

// requestsEnd is the time after a workspace's deletion during which a request may still store
// a credential in it. A request that was under way counts as before the deletion, and ends
// at the functions' timeout of 10 seconds. Five more seconds allow for clocks that differ,
// and for a deletion time in whole seconds.
const requestsEnd = auth.DeletionDelay + 10*time.Second + 5*time.Second

type (
	workspacePurge struct {
		oneWorkspace
		confirmation
		DryRun bool `help:"Only list the credentials and files."`
	}
	workspaceErase struct {
		oneWorkspace
		confirmation
	}
)

const (
	errLive         = exit.Refusal("the workspace is live: delete it first")
	errKeysEnabled  = exit.Findings("the workspace is deleted. Keys are not disabled: they are named above. `admin key delete` removes each")
	errKeysLeft     = exit.Findings("everything else is erased. Keys are left: they are named above. `admin key delete` removes each")
	errOtherAccount = exit.Findings("it belongs to another account")
)

// removal is what a purge or an erasure removed.
type removal struct {
	ID          ids.Workspace `json:"id"`
	Credentials int           `json:"credentials_removed"`
	Versions    int           `json:"file_versions_removed"`
	Uploads     int           `json:"uploads_aborted"`
	Keys        int           `json:"keys_removed"`
}

func (r removal) String() string {
	return fmt.Sprintf("%s, %s of files, %s in parts and %s", output.Count(r.Credentials, "credential"), output.Count(r.Versions, "version"),
		output.Count(r.Uploads, "upload"), output.Count(r.Keys, "key"))
}

// Run removes the credentials and files of a deleted workspace.
func (c workspacePurge) Run(ctx context.Context, s *session) error {
	if c.DryRun {
		return c.preview(ctx, s)
	}
	return c.remove(ctx, s, c.confirmation, false)
}

// Run does in one act what a deletion, a purge and deletions of keys do.
func (c workspaceErase) Run(ctx context.Context, s *session) error {
	return c.remove(ctx, s, c.confirmation, true)
}

// remove purges a deleted workspace or, with its keys, erases a workspace. If it was
// interrupted, it may be run again.
func (c oneWorkspace) remove(ctx context.Context, s *session, asked confirmation, withKeys bool) error {
	action, effect, done := "workspace.purge", "removes for good the credentials and files of %s", "%s is purged: %s removed."
	if withKeys {
		action, effect = "workspace.erase", "removes for good %s, its credentials, its files and every key bound to it"
		done = "%s is erased: %s removed. infra/operations/incidents.md says what remains, and until when."
	}
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err == nil && found.DeletedAt.IsZero() && !withKeys {
		err = errLive
	}
	removed := removal{ID: c.ID}
	attrs := []any{"account", c.Account, "workspace", c.ID}
	if err == nil {
		s.warnOfDefault(found)
		if err := asked.confirm(ctx, s, fmt.Sprintf(effect, named("workspace", found.Name, string(c.ID))), found.Name, string(c.ID)); err != nil {
			return err
		}
		if err := s.begin(ctx, action, attrs...); err != nil {
			return err
		}
		err = s.remove(ctx, c.Account, c.ID, withKeys, &removed)
	}
	err = s.orRepeat(err, fmt.Sprintf("removed so far: %s", removed))
	return s.finish(ctx, action, err, removed, fmt.Sprintf(done, c.ID, removed), append(attrs, "credentials_removed", removed.Credentials,
		"file_versions_removed", removed.Versions, "uploads_aborted", removed.Uploads, "keys_removed", removed.Keys)...)
}

// remove deletes the workspace first: an interrupted deletion may have left keys enabled.
func (s *session) remove(ctx context.Context, account ids.Account, id ids.Workspace, withKeys bool, removed *removal) error {
	if err := s.registry.DeleteWorkspace(ctx, account, id); err != nil {
		return err
	}
	found, err := s.registry.FindWorkspace(ctx, account, id)
	if err != nil {
		return err
	}
	err = s.purge(ctx, found, removed)
	if withKeys {
		err = cmp.Or(err, s.deleteBoundKeys(ctx, account, id, removed))
	}
	return err
}

// deleteBoundKeys deletes the keys of a workspace. It names the keys that it leaves: those of another account, and those that cannot be read.
func (s *session) deleteBoundKeys(ctx context.Context, account ids.Account, id ids.Workspace, removed *removal) error {
	survey, err := auth.ReadSurvey(ctx, s.db, s.target.Outputs.AccessTableName)
	if err != nil {
		return err
	}
	var left error
	for _, key := range boundKeys(survey, id) {
		if key.Fault != nil || key.Account != account {
			s.warn(fmt.Sprintf("key %s is left: %v", key.Hash, cmp.Or(key.Fault, error(errOtherAccount))))
			left = errKeysLeft
			continue
		}
		s.changes.action.reset()
		deleteErr := s.registry.DeleteKey(ctx, account, key.Hash)
		if errors.Is(deleteErr, auth.ErrNoKey) { // deleted in between
			continue
		}
		s.audit(ctx, "key.delete", deleteErr, "account", account, "key", key.Hash)
		if deleteErr == nil {
			removed.Keys++
		}
		err = cmp.Or(err, deleteErr)
	}
	return cmp.Or(err, left)
}

// purgeRow is a credential, a file or an upload in parts that a purge would remove.
type purgeRow struct {
	Kind     string          `json:"kind" title:"kind"`
	ID       string          `json:"id" title:"id" list:"id,short"`
	Name     output.Optional `json:"name" title:"name" list:"name,16"`
	Versions *int64          `json:"versions" title:"versions"`
	Bytes    *int64          `json:"bytes" title:"bytes"`
}

// preview lists the things that a purge would remove.
func (c workspacePurge) preview(ctx context.Context, s *session) error {
	found, err := s.registry.FindWorkspace(ctx, c.Account, c.ID)
	if err == nil && found.DeletedAt.IsZero() {
		err = errLive
	}
	if err != nil {
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

// purge sweeps at once, and again when the requests from before the deletion have ended. In
// between it aborts uploads in parts. If the right to do that is missing, the rest is removed all
// the same. An upload that was completed meanwhile is a file, which the second sweep removes.
func (s *session) purge(ctx context.Context, deleted auth.Workspace, removed *removal) error {
	if err := s.sweep(ctx, deleted.ID, removed); err != nil {
		return err
	}
	if wait := deleted.DeletedAt.Add(requestsEnd).Sub(s.now()); wait > 0 {
		s.note("Swept once; sweeping again in %s, when requests that were under way at the deletion have ended.", wait.Round(time.Second))
		if err := s.pause(ctx, wait); err != nil {
			return err
		}
	}
	aborted, err := s.files.AbortUploads(ctx, deleted.ID)
	removed.Uploads += aborted
	return errors.Join(err, s.sweep(ctx, deleted.ID, removed))
}

// sweep removes the credentials and files and adds them to the count, even if it fails.
func (s *session) sweep(ctx context.Context, id ids.Workspace, removed *removal) error {
	credentials, credentialsErr := s.credentials.Purge(ctx, id)
	removed.Credentials += credentials
	versions, filesErr := s.files.Purge(ctx, id)
	removed.Versions += versions
	return errors.Join(credentialsErr, filesErr)
}
