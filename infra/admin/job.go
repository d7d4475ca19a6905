package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

type jobCommands struct {
	Create jobCreate `cmd:"" help:"Queue a sync job."`
	Fail   jobFail   `cmd:"" help:"Mark a queued or running job as failed."`
	Show   jobShow   `cmd:"" reads:"" help:"Show a job."`
	List   jobList   `cmd:"" reads:"" anywhere:"" help:"List sync jobs, of all accounts without --account. Reads the whole table of jobs: on AWS that costs one read unit for each 4 KB of it."`
}

type jobCreate struct {
	owner
}

type jobList struct {
	Account ids.Account   `env:"SIGNALBOX_ACCOUNT" placeholder:"ID" help:"List those of this account alone."`
	Status  string        `enum:"queued,running,succeeded,failed,damaged," default:"" placeholder:"STATUS" help:"List those that are queued, running, succeeded, failed or damaged."`
	Older   arguments.Age `placeholder:"DURATION" help:"List those that have had their status for longer, such as 1h."`
}

type oneJob struct {
	owner
	ID ids.Job `arg:"" name:"job" help:"The job."`
}

type (
	jobShow struct{ oneJob }
	jobFail struct {
		oneJob
		Message string `required:"" placeholder:"TEXT" help:"The error message that customers see: a fixed text, without ids or secrets."`
	}
)

type jobView struct {
	Account       output.Optional `json:"account_id" list:"account,short"`
	ID            ids.Job         `json:"id" title:"job" list:"job,short"`
	Status        syncjobs.Status `json:"status" title:"status"`
	SyncedGroups  *int64          `json:"synced_groups" title:"synced groups" list:"synced"`
	DeletedGroups *int64          `json:"deleted_groups" title:"deleted groups" list:"deleted"`
	ErrorMessage  *string         `json:"error_message" title:"error message"`
	CreatedAt     output.Optional `json:"created_at" title:"created" list:"age,age"`
	StartedAt     output.Optional `json:"started_at" title:"started" list:"started,age"`
	FinishedAt    output.Optional `json:"finished_at" title:"finished" list:"finished,age"`
}

// changedJob is the JSON result of a change. The API, too, calls it a status.
type changedJob struct {
	ID     ids.Job         `json:"id"`
	Status syncjobs.Status `json:"status"`
}

func (c jobCreate) Run(ctx context.Context, s *session) error {
	var id ids.Job
	err := s.Registry.CheckAccount(ctx, c.Account)
	if err == nil {
		id, err = s.jobWriter.Create(ctx, c.Account)
	}
	s.Audit(ctx, "job.create", err, []any{"account", c.Account, "job", id})
	return s.say(err, changedJob{id, syncjobs.Queued}, "%s", id)
}

func (c jobFail) Run(ctx context.Context, s *session) error {
	err := s.jobWriter.Fail(ctx, c.Account, c.ID, c.Message)
	if errors.Is(err, syncjobs.ErrState) { // the job has ended, or is missing
		var job syncjobs.Job
		if job, err = c.find(ctx, s); err == nil {
			err = fmt.Errorf("%w: it is %s", syncjobs.ErrState, job.Status)
		}
	}
	s.Audit(ctx, "job.fail", err, []any{"account", c.Account, "job", c.ID})
	return s.say(err, changedJob{c.ID, syncjobs.Failed}, "Job %s is failed.", c.ID)
}

func (c oneJob) find(ctx context.Context, s *session) (syncjobs.Job, error) {
	found, err := s.jobs.Find(ctx, c.ID)
	if err != nil {
		return syncjobs.Job{}, err
	}
	if err := found.Damage(); err != nil {
		return syncjobs.Job{}, err
	}
	return found.For(c.Account)
}

func (c jobShow) Run(ctx context.Context, s *session) error {
	job, err := c.find(ctx, s)
	if err != nil {
		return err
	}
	return output.One(s.out, viewJob(syncjobs.Listed{Job: job, Account: c.Account}))
}

func viewJob(j syncjobs.Listed) jobView {
	view := jobView{
		Account: output.Optional(j.Account), ID: j.ID, Status: j.Status, SyncedGroups: j.SyncedGroups, DeletedGroups: j.DeletedGroups, ErrorMessage: j.ErrorMessage,
		CreatedAt: output.When(j.CreatedAt), StartedAt: output.When(aws.ToTime(j.StartedAt)), FinishedAt: output.When(aws.ToTime(j.FinishedAt)),
	}
	if j.Damage != nil {
		view.Status = "damaged"
	}
	return view
}

func (c jobList) Run(ctx context.Context, s *session) error {
	if c.Account != "" {
		if err := s.Registry.CheckAccount(ctx, c.Account); err != nil {
			return err
		}
	}
	found, err := s.jobLister.List(ctx, c.Account)
	if err != nil {
		return err
	}
	since := s.now().Add(-time.Duration(c.Older))
	found = slices.DeleteFunc(found, func(job syncjobs.Listed) bool {
		changed := cmp.Or(aws.ToTime(job.FinishedAt), aws.ToTime(job.StartedAt), job.CreatedAt) // zero for a damaged job
		return c.Older > 0 && !changed.Before(since)
	})
	views := only(each(found, viewJob), c.Status, func(v jobView) string { return string(v.Status) })
	return output.List(s.out, views, "job", "status", "age", "started", "finished", "account", "synced", "deleted")
}
