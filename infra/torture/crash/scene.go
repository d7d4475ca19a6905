package crash

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/torture/caller"
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/infra/torture/service"
	"signalbox.dev/infra/torture/world"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// filesEach is how many files are stored for each second of a run: more than are
// asked for, so that some are left alone.
const filesEach = 60

// scene is what clients find, and what they were told.
type scene struct {
	service *service.Service
	caller  *caller.Client
	ledger  *ledger.Ledger

	account world.Account
	// keys are the clients' own; spare is nobody's, and limited is hammered with.
	keys           []world.Key
	spare, limited world.Key
	standard       world.Key
	// stranger is of another account, and elsewhere a workspace of his.
	stranger  world.Key
	elsewhere ids.Workspace
	job       ids.Job
	files     []*ledger.File

	next     atomic.Int64 // of files
	requests atomic.Int64
}

// furnish makes everything that clients need, while nothing is killed.
func furnish(ctx context.Context, s *service.Service, c Config) (*scene, error) {
	w := &scene{service: s, caller: caller.New(s.BaseURL(), clients+1)}
	stack := s.Stack()
	var err error
	if w.account, err = world.NewAccount(ctx, stack, 2); err != nil {
		return nil, err
	}
	if w.keys, err = w.account.Keys(ctx, stack, clients+2); err != nil {
		return nil, err
	}
	w.spare, w.limited = w.keys[clients], w.keys[clients+1]
	if w.standard, err = w.account.Key(ctx, stack, auth.NewKey{Kind: auth.Standard}); err != nil {
		return nil, err
	}
	other, err := world.NewAccount(ctx, stack, 1)
	if err != nil {
		return nil, err
	}
	w.elsewhere = other.Workspaces[0]
	if w.stranger, err = other.Key(ctx, stack, auth.NewKey{Kind: auth.Management}); err != nil {
		return nil, err
	}
	if w.job, err = syncjobs.NewWriter(stack.DynamoDB, stack.Jobs).Create(ctx, w.account.ID); err != nil {
		return nil, err
	}
	w.ledger = ledger.New(w.account.ID)
	if w.files, err = w.account.Files(ctx, stack, w.ledger, int(c.Duration.Seconds()*filesEach)); err != nil {
		return nil, err
	}
	return w, w.layer(ctx, stack)
}

// layer gives every third file a second version, where the bucket keeps versions.
func (w *scene) layer(ctx context.Context, stack *service.Stack) error {
	for i := 0; i < len(w.files); i += 3 {
		f := w.files[i]
		_, err := stack.S3.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &stack.Files, Key: aws.String(files.Key(f.Workspace, f.ID)), Body: strings.NewReader(f.Content()),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ask asks for a credential, notes the answer and gives it.
func (w *scene) ask(ctx context.Context, o *ledger.Order, body map[string]any) caller.Answer {
	w.requests.Add(1)
	a, err := w.caller.Create(ctx, o.APIKey, o.IdempotencyKey, body)
	if err != nil {
		w.ledger.Breach("%v", err)
	}
	o.Told(a)
	return a
}

// remove asks for a file to be deleted and gives the answer.
func (w *scene) remove(ctx context.Context, apiKey string, f *ledger.File) caller.Answer {
	w.requests.Add(1)
	a, err := w.caller.Delete(ctx, apiKey, string(f.Workspace), string(f.ID))
	if err != nil {
		w.ledger.Breach("%v", err)
	}
	return a
}

// finish asks again for whatever may be asked for again: it must come to the
// same end as if nothing had ever been killed.
func (w *scene) finish(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for _, o := range w.ledger.Orders() {
		group.Go(func() error {
			if a := w.ask(ctx, o, o.Body()); !o.Done() {
				w.ledger.Breach("%s is not accepted although nothing is in its way: %d", o.Name, a.Status)
			}
			return ctx.Err()
		})
	}
	for _, f := range w.ledger.Unfinished() {
		group.Go(func() error {
			a := w.remove(ctx, w.spare.Token, f)
			if f.Told(a); a.Uncertain() {
				w.ledger.Breach("%s cannot be deleted although nothing is in the way: %d", f.ID, a.Status)
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}
