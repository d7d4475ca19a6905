package history

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/shared/files"
)

// delete asks for a file to be deleted, now and then with a key that reaches
// another workspace only.
func (x *client) delete(ctx context.Context) {
	f, by := x.file(), x.key()
	bound := x.random.IntN(4) == 0
	if bound {
		by = x.bound
	}
	w, id := string(x.account.Workspaces[f.workspace]), string(f.id)
	call := x.now()
	a, err := x.caller.Delete(ctx, by.Token, w, id)
	x.answered(a, err)
	switch {
	case a.Uncertain():
		x.unsure(call, filePerhapsDeleted(id))
	case a.Status == http.StatusUnauthorized:
		x.shown(call, keyRefused(string(by.Hash)))
	case a.Status == http.StatusOK && bound && f.workspace != 1:
		x.violation("a key of another workspace deleted %s", id)
	case a.Status == http.StatusOK:
		x.shown(call, keyLetIn(string(by.Hash)), workspaceLive(w), fileDeleted(id))
		x.retried(call, filePerhapsDeleted(id))
	case a.Status != http.StatusNotFound:
		x.violation("a deletion was answered with %d", a.Status)
	case bound && f.workspace != 1 || x.deleting[f.workspace].Load() && !x.stormy:
		// The answer says nothing about the file.
		x.shown(call, keyLetIn(string(by.Hash)))
	case x.deleting[f.workspace].Load():
		// Either the workspace was gone before, or the file was deleted, the answer
		// lost, and a second attempt found nothing. If ever, then it took its effect.
		x.shown(call, keyLetIn(string(by.Hash)))
		x.note(x.number, call, never, filePerhapsDeleted(id))
	case x.stormy:
		x.shown(call, keyLetIn(string(by.Hash)), filePerhapsDeleted(id))
	default:
		x.shown(call, keyLetIn(string(by.Hash)), fileSeen(id, false))
	}
}

// head looks whether a file is there.
func (x *client) head(ctx context.Context, f fileAt) {
	stack, key := x.service.Stack(), files.Key(x.account.Workspaces[f.workspace], f.id)
	call := x.now()
	_, err := stack.S3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(stack.Files), Key: &key})
	var missing *types.NotFound
	switch {
	case err == nil:
		x.shown(call, fileSeen(string(f.id), true))
	case errors.As(err, &missing):
		x.shown(call, fileSeen(string(f.id), false))
	default:
		x.unsure(call)
	}
}

// read asks how a job is doing.
func (x *client) read(ctx context.Context) {
	id, by := string(x.jobs[x.random.IntN(len(x.jobs))]), x.key()
	call := x.now()
	a, err := x.caller.Job(ctx, by.Token, id)
	x.answered(a, err)
	var body struct {
		Data struct{ Status string }
	}
	switch {
	case a.Uncertain():
		x.unsure(call)
	case a.Status == http.StatusUnauthorized:
		x.shown(call, keyRefused(string(by.Hash)))
	case a.Status == http.StatusOK && json.Unmarshal(a.Body, &body) == nil:
		x.shown(call, keyLetIn(string(by.Hash)), jobSeen(id, body.Data.Status))
	default:
		x.violation("a job that is there was answered with %d", a.Status)
	}
}
