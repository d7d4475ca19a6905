package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

type fileCommands struct {
	Upload fileUpload `cmd:"" help:"Store a file."`
	List   fileList   `cmd:"" reads:"" help:"List the files of a workspace."`
	Delete fileDelete `cmd:"" help:"Delete every version of a file. This cannot be undone."`
}

type fileUpload struct {
	scope
	Path string   `arg:"" type:"existingfile" help:"What to upload; - reads standard input."`
	ID   ids.File `name:"id" placeholder:"FILE_ID" help:"Its file id; if omitted, a new one."`
}

type fileList struct {
	scope
}

type fileDelete struct {
	scope
	confirmation
	ID ids.File `arg:"" name:"file" help:"The file."`
}

type fileView struct {
	ID       ids.File        `json:"id" title:"file" list:"file"`
	Bytes    int64           `json:"bytes" title:"bytes"`
	StoredAt output.Optional `json:"stored_at" title:"stored" list:"age,age"`
}

func (c fileUpload) Run(ctx context.Context, s *session) error {
	if c.ID == "" {
		c.ID = ids.NewFile()
	}
	workspace, err := s.Registry.FindWorkspace(ctx, c.Account, c.Workspace)
	if err == nil {
		err = c.upload(ctx, s, workspace)
	}
	if err == nil {
		err = c.undo(ctx, s, workspace.ID)
	}
	s.Audit(ctx, "file.upload", err, []any{"account", c.Account, "workspace", workspace.ID, "file", c.ID})
	return s.say(err, changed{string(c.ID), "stored"}, "%s", c.ID)
}

func (c fileUpload) upload(ctx context.Context, s *session, to auth.Workspace) error {
	if !to.DeletedAt.IsZero() {
		return auth.ErrWorkspaceDeleted
	}
	if c.Path == "-" {
		content, err := while(ctx, func() ([]byte, error) { return io.ReadAll(s.stdin) })
		if err != nil {
			return fmt.Errorf("reading standard input: %w", err)
		}
		return s.Files.Upload(ctx, to.ID, c.ID, bytes.NewReader(content), "application/octet-stream")
	}
	file, err := os.Open(c.Path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	return s.Files.Upload(ctx, to.ID, c.ID, file, "application/octet-stream")
}

// undo deletes the file again if its workspace was deleted during the upload: if a purge
// ended before the upload, nothing else would remove the file.
func (c fileUpload) undo(ctx context.Context, s *session, to ids.Workspace) error {
	now, err := s.Registry.FindWorkspace(ctx, c.Account, to)
	if err != nil || now.DeletedAt.IsZero() {
		return err
	}
	if _, err := s.fileStore.Delete(ctx, to, c.ID); err != nil && !errors.Is(err, files.ErrNotFound) {
		return fmt.Errorf("the workspace was deleted during the upload: purge it again: %w", err)
	}
	return auth.ErrWorkspaceDeleted
}

func (c fileList) Run(ctx context.Context, s *session) error {
	workspace, err := s.Registry.FindWorkspace(ctx, c.Account, c.Workspace)
	if err != nil {
		return err
	}
	found, err := s.Files.List(ctx, workspace.ID)
	if err != nil {
		return err
	}
	view := func(f files.File) fileView {
		return fileView{ID: f.ID, Bytes: f.Bytes, StoredAt: output.When(f.StoredAt)}
	}
	return output.List(s.out, each(found, view), "file", "bytes", "age")
}

func (c fileDelete) Run(ctx context.Context, s *session) error {
	var receipt files.Receipt
	workspace, err := s.Registry.FindWorkspace(ctx, c.Account, c.Workspace)
	if err == nil {
		effect := fmt.Sprintf("removes every version of %s of workspace %s for good", c.ID, workspace.ID)
		if err := c.confirm(ctx, s, effect, string(c.ID), ""); err != nil {
			return err
		}
		receipt, err = s.fileStore.Delete(ctx, workspace.ID, c.ID)
	}
	s.Audit(ctx, "file.delete", err, []any{"account", c.Account, "workspace", workspace.ID, "file", c.ID,
		"versions_removed", receipt.Versions, "answer_lost", receipt.ResponseLost})
	return s.say(err, changed{string(c.ID), "deleted"}, "File %s is deleted: %s removed.", c.ID, acts.Count(receipt.Versions, "version"))
}
