package crash

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/testkit"
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

// fixture is what clients use, and the ledger of what they were answered.
type fixture struct {
	service *service.Service
	caller  *caller.Client
	ledger  *ledger.Ledger

	account world.Account
	// keys are the clients' own; spare and limited belong to no client.
	keys           []world.Key
	spare, limited world.Key
	standard       world.Key
	// stranger is of another account, and elsewhere a workspace of his.
	stranger  world.Key
	elsewhere ids.Workspace
	job       ids.Job
	files     []*ledger.File

	seed uint64
	// overloaded says that requests may be throttled.
	overloaded bool

	next, started       atomic.Int64 // files, clients
	requests, throttled atomic.Int64
}

// newFixture makes everything that clients need, before anything is killed.
func newFixture(ctx context.Context, s *service.Service, c Config) (*fixture, error) {
	f := &fixture{service: s, seed: c.Seed, caller: caller.New(s.BaseURL(), crowd)}
	stack := s.Stack()
	var err error
	if f.account, err = world.NewAccount(ctx, stack, 2); err != nil {
		return nil, err
	}
	if f.keys, err = f.account.Keys(ctx, stack, clients+2); err != nil {
		return nil, err
	}
	f.spare, f.limited = f.keys[clients], f.keys[clients+1]
	if f.standard, err = f.account.Key(ctx, stack, auth.NewKey{Kind: auth.Standard}); err != nil {
		return nil, err
	}
	other, err := world.NewAccount(ctx, stack, 1)
	if err != nil {
		return nil, err
	}
	f.elsewhere = other.Workspaces[0]
	if f.stranger, err = other.Key(ctx, stack, auth.NewKey{Kind: auth.Management}); err != nil {
		return nil, err
	}
	if f.job, err = syncjobs.NewWriter(stack.DynamoDB, stack.Jobs).Create(ctx, f.account.ID); err != nil {
		return nil, err
	}
	f.ledger = ledger.New(f.account.ID)
	if f.files, err = f.account.Files(ctx, stack, f.ledger, int(c.Duration.Seconds()*filesEach)); err != nil {
		return nil, err
	}
	return f, f.layer(ctx, stack)
}

// layer gives every third file a second version, where the bucket keeps versions.
func (f *fixture) layer(ctx context.Context, stack *testkit.Stack) error {
	for i := 0; i < len(f.files); i += 3 {
		file := f.files[i]
		_, err := stack.S3.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &stack.Files, Key: aws.String(files.Key(file.Workspace, file.ID)), Body: strings.NewReader(file.Content()),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ask asks for a credential, notes the answer and gives it.
func (f *fixture) ask(ctx context.Context, o *ledger.Order, body map[string]any) caller.Answer {
	f.requests.Add(1)
	a, err := f.caller.Create(ctx, o.APIKey, o.IdempotencyKey, body)
	f.check(a, err)
	o.Answered(a)
	return a
}

// remove asks for a file to be deleted and gives the answer.
func (f *fixture) remove(ctx context.Context, apiKey string, file *ledger.File) caller.Answer {
	f.requests.Add(1)
	a, err := f.caller.Delete(ctx, apiKey, string(file.Workspace), string(file.ID))
	f.check(a, err)
	return a
}

// check holds an answer to the envelope, and in overload expects one.
func (f *fixture) check(a caller.Answer, err error) {
	if err != nil {
		f.ledger.Breach("%v", err)
	}
	if a.Status == http.StatusTooManyRequests {
		f.throttled.Add(1)
	}
	if a.Status == 0 && f.overloaded {
		f.ledger.Breach("an overloaded service did not answer")
	}
}

// finish asks again for whatever may be asked for again: it must come to the
// same end as if nothing had ever been killed.
func (f *fixture) finish(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for _, o := range f.ledger.Orders() {
		group.Go(func() error {
			if a := f.ask(ctx, o, o.Body()); !o.Done() {
				f.ledger.Breach("%s is not accepted although nothing is in its way: %d", o.Name, a.Status)
			}
			return ctx.Err()
		})
	}
	for _, file := range f.ledger.Unfinished() {
		group.Go(func() error {
			a := f.remove(ctx, f.spare.Token, file)
			if file.Answered(a); a.Uncertain() {
				f.ledger.Breach("%s cannot be deleted although nothing is in the way: %d", file.ID, a.Status)
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}
