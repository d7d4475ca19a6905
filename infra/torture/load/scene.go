package load

import (
	"context"
	"fmt"
	"math/rand/v2"

	"signalbox.dev/infra/torture/caller"
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/infra/torture/service"
	"signalbox.dev/infra/torture/world"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

const (
	// keys share the requests: a limiter's item is one key's.
	keys       = 16
	workspaces = 8
	jobs       = 100
	// stock is how many files wait to be deleted, batch how many are added at a
	// time.
	stock = 200
	batch = 8
)

// scene is what callers find, and what they were told.
type scene struct {
	Config
	stack   *service.Stack
	caller  *caller.Client
	ledger  *ledger.Ledger
	account world.Account
	keys    []world.Key
	jobs    []ids.Job
	files   chan *ledger.File

	// random and count belong to whoever draws.
	random *rand.Rand
	count  int
}

// furnish makes everything that requests ask for.
func furnish(ctx context.Context, c Config) (*scene, error) {
	s := &scene{
		Config: c, stack: c.Service.Stack(), caller: caller.New(c.Service.BaseURL(), maxOutstanding),
		files:  make(chan *ledger.File, stock),
		random: rand.New(rand.NewPCG(c.Seed, 0)), //nolint:gosec // repeatable, on purpose
	}
	var err error
	if s.account, err = world.NewAccount(ctx, s.stack, workspaces); err != nil {
		return nil, err
	}
	if s.keys, err = s.account.Keys(ctx, s.stack, keys); err != nil {
		return nil, err
	}
	writer := syncjobs.NewWriter(s.stack.DynamoDB, s.stack.Jobs)
	for range jobs {
		job, err := writer.Create(ctx, s.account.ID)
		if err != nil {
			return nil, fmt.Errorf("making a sync job: %w", err)
		}
		s.jobs = append(s.jobs, job)
	}
	s.ledger = ledger.New(s.account.ID)
	for len(s.files)+batch <= stock {
		if err := s.upload(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// restock stores files as others are deleted, until the context is done.
func (s *scene) restock(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.upload(ctx); err != nil {
			return err
		}
	}
	return nil
}

// upload stores some files. What was begun is finished: the ledger says that they
// are there.
func (s *scene) upload(ctx context.Context) error {
	some, err := s.account.Files(context.WithoutCancel(ctx), s.stack, s.ledger, batch)
	if err != nil {
		return fmt.Errorf("storing files to delete: %w", err)
	}
	for _, f := range some {
		select {
		case s.files <- f:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
