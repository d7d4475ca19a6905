package load

import (
	"context"
	"fmt"
	"net/http"

	"signalbox.dev/infra/torture/caller"
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/shared/ids"
)

// operation is a kind of request.
type operation int

const (
	readJob operation = iota
	create
	createOnce
	deleteFile
	deleteNothing
	createAgain
	deleteAgain
	operations
)

// String is what the table calls it.
func (o operation) String() string {
	return [operations]string{
		readJob:       "GET sync job",
		create:        "POST byok",
		createOnce:    "POST byok, Idempotency-Key",
		deleteFile:    "DELETE file",
		deleteNothing: "DELETE unknown file",
		createAgain:   "POST byok, repeated",
		deleteAgain:   "DELETE file, repeated",
	}[o]
}

// expects reports whether the status is the answer where nothing is in the way.
func (o operation) expects(status int) bool {
	want := [operations]int{
		readJob: http.StatusOK,
		create:  http.StatusCreated, createOnce: http.StatusCreated, createAgain: http.StatusCreated,
		deleteFile: http.StatusOK, deleteNothing: http.StatusNotFound, deleteAgain: http.StatusOK,
	}[o]
	// The first deletion may have had its effect.
	return status == want || o == deleteAgain && status == http.StatusNotFound
}

// draw is the next request: half of them read, a quarter create, half of these
// under an Idempotency-Key, and a quarter delete, half of these a file that is
// there as long as the stock lasts.
func (s *scene) draw() request {
	s.count++
	apiKey := s.keys[s.random.IntN(len(s.keys))].Token
	switch s.random.IntN(8) {
	case 0, 1, 2, 3:
		return s.read(apiKey, s.jobs[s.random.IntN(len(s.jobs))])
	case 4:
		return s.create(create, s.order(apiKey))
	case 5:
		o := s.order(apiKey)
		o.IdempotencyKey = fmt.Sprintf("load-%d-%d", s.Seed, s.count)
		return s.create(createOnce, o)
	case 6:
		select {
		case f := <-s.files:
			return s.delete(deleteFile, apiKey, f)
		default:
		}
	}
	return s.delete(deleteNothing, apiKey, &ledger.File{Workspace: s.account.Workspaces[0], ID: ids.NewFile()})
}

// order is one with a name of its own. Positions are counted for each workspace
// and provider, so that requests at the same instant seldom meet in one counter.
func (s *scene) order(apiKey string) ledger.Order {
	providers := []string{"anthropic", "cohere", "deepseek", "groq", "mistral", "openai", "perplexity", "together"}
	return ledger.Order{
		Name: fmt.Sprintf("load-%d-%d", s.Seed, s.count), APIKey: apiKey,
		Workspace: s.account.Workspaces[s.random.IntN(len(s.account.Workspaces))],
		Provider:  providers[s.random.IntN(len(providers))],
	}
}

func (s *scene) read(apiKey string, job ids.Job) request {
	return request{readJob, func(ctx context.Context) caller.Answer {
		return s.checked(s.caller.Job(ctx, apiKey, string(job)))
	}}
}

// create notes the order before it is sent.
func (s *scene) create(kind operation, o ledger.Order) request {
	return request{kind, func(ctx context.Context) caller.Answer { return s.ask(ctx, s.ledger.Order(o)) }}
}

func (s *scene) ask(ctx context.Context, o *ledger.Order) caller.Answer {
	a := s.checked(s.caller.Create(ctx, o.APIKey, o.IdempotencyKey, o.Body()))
	o.Told(a)
	return a
}

// delete asks for a file to be deleted. One that is not in the ledger, as it was
// never there, is told nothing.
func (s *scene) delete(kind operation, apiKey string, f *ledger.File) request {
	return request{kind, func(ctx context.Context) caller.Answer {
		a := s.checked(s.caller.Delete(ctx, apiKey, string(f.Workspace), string(f.ID)))
		if kind != deleteNothing {
			f.Told(a)
		}
		return a
	}}
}

// checked notes an answer that is not in the shape that the contract gives it.
func (s *scene) checked(a caller.Answer, err error) caller.Answer {
	if err != nil {
		s.ledger.Breach("%v", err)
	}
	return a
}

// unsettled are the requests that may be sent again and have come to no end.
func (s *scene) unsettled() []request {
	var all []request
	for _, o := range s.ledger.Orders() {
		if !o.Done() {
			all = append(all, request{createAgain, func(ctx context.Context) caller.Answer { return s.ask(ctx, o) }})
		}
	}
	for _, f := range s.ledger.Unfinished() {
		all = append(all, s.delete(deleteAgain, s.keys[0].Token, f))
	}
	return all
}
