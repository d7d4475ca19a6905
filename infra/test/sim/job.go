package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// Read is a request for the state of a sync job.
type Read struct {
	Token string // the tenant's management key by default
	Job   string
	// Never is whether the account has no such job.
	Never bool
}

// Read makes an actor that reads a job.
func (w *World) Read(name string, r Read) {
	r.Token = cmp.Or(r.Token, w.Tenant.Management)
	w.sends(name, r)
}

func (r Read) event() functest.Event {
	return functest.NewEvent(http.MethodGet, "/api/v1/scim/sync-jobs/{id}").At("id", r.Job).As(r.Token)
}

func (r Read) judge(w *World, x *exchange) {
	if x.answer.Status == http.StatusInternalServerError || x.answer.Status == http.StatusUnauthorized {
		return
	}
	if (x.answer.Status == http.StatusNotFound) != r.Never {
		w.problem("%s: %d, though the account's job is there: %v", x.Name, x.answer.Status, !r.Never)
	}
	if x.answer.Status != http.StatusOK {
		return
	}
	var body struct {
		Data struct{ Status syncjobs.Status }
	}
	w.must(json.Unmarshal([]byte(x.answer.Body), &body))
	w.showed(x.actor, shows("job "+r.Job, "is "+string(body.Data.Status), func(s syncjobs.Status) bool { return s == body.Data.Status }))
}

// Job makes a job of the tenant in this state.
func (w *World) Job(state syncjobs.Status) ids.Job {
	job, err := w.Direct.Jobs.Create(w.t.Context(), w.Tenant.ID)
	w.must(err)
	w.Name(string(job), "job")
	if state != syncjobs.Queued {
		w.must(w.Direct.Jobs.Start(w.t.Context(), w.Tenant.ID, job))
	}
	if state == syncjobs.Succeeded {
		w.must(w.Direct.Jobs.Succeed(w.t.Context(), w.Tenant.ID, job, 12, 0))
	}
	w.showed(w.past(), sets("job "+string(job), string(state), state))
	return job
}

// Step makes an actor that moves the job to a state, if it is in one of the states
// from.
func (w *World) Step(name string, job ids.Job, to syncjobs.Status, from ...syncjobs.Status) {
	object := "job " + string(job)
	w.acts(act{
		name: name,
		run: func(ctx context.Context, c Clients) error {
			switch to {
			case syncjobs.Running:
				return c.Jobs.Start(ctx, w.Tenant.ID, job)
			case syncjobs.Succeeded:
				return c.Jobs.Succeed(ctx, w.Tenant.ID, job, 3, 4)
			case syncjobs.Queued, syncjobs.Failed:
			}
			return c.Jobs.Fail(ctx, w.Tenant.ID, job, "a fixed text")
		},
		shows: []fact{on(object, "to "+string(to), func(s syncjobs.Status) (bool, syncjobs.Status) { return slices.Contains(from, s), to })},
		refused: map[error][]fact{syncjobs.ErrState: {
			shows(object, "not "+string(from[0]), func(s syncjobs.Status) bool { return !slices.Contains(from, s) }),
		}},
	})
}
