package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// credentialRewrap moves the credentials of all accounts, so it has no flag for one.
type credentialRewrap struct {
	To     arguments.KeyARN   `required:"" placeholder:"ARN" help:"The key to move to. New credentials must be sealed under it already."`
	From   []arguments.KeyARN `placeholder:"ARN" help:"A key to move from; can be repeated. If omitted, the stack's own key."`
	Rate   int                `default:"100" placeholder:"N" help:"Rewrap at most N credentials a second (${default}), and read at most as many pages of 50."`
	DryRun bool               `help:"Only count the credentials that would be rewrapped."`
}

type rewrapResult struct {
	To           arguments.KeyARN   `json:"to"`
	From         []arguments.KeyARN `json:"from"`
	Rewrapped    int                `json:"rewrapped" title:"rewrapped"`
	AlreadyThere int                `json:"already_there" title:"already there"`
	Changed      int                `json:"gone_meanwhile" title:"gone meanwhile"`
	Failed       []rewrapFailure    `json:"failed"`
	Failures     int                `json:"-" title:"failed"`
	Seconds      float64            `json:"seconds" title:"seconds"`
}

type rewrapFailure struct {
	Workspace ids.Workspace  `json:"workspace_id" list:"workspace,short"`
	ID        ids.Credential `json:"id" list:"credential,short"`
	Reason    string         `json:"reason" list:"reason,30"`
}

// surveyView is the number of credentials under one key.
type surveyView struct {
	Key         arguments.KeyARN `json:"key" list:"key,short"`
	Credentials int              `json:"credentials" list:"credentials"`
	Status      string           `json:"status" list:"status,16"`
}

// Run moves all credentials, or counts them. If it was interrupted or killed, it may be
// run again. Two may run at once.
func (c credentialRewrap) Run(ctx context.Context, s *session) error {
	from, err := c.sources(s.target.Outputs)
	if err != nil {
		return err
	}
	sources := each(from, func(key arguments.KeyARN) string { return string(key) })
	run := s.NewRewrap(s.clock(), s.wrappedKeys, seal.NewRewrapper(s.kms, string(c.To), sources...), sources, c.Rate)
	found, err := run.CountByKey(ctx)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.showCounts(s, sources, found)
	}
	began := s.now()
	moved, err := run.Run(ctx, found)
	if acts.Is[acts.Refusal](err) {
		return err // nothing was begun
	}
	result := rewrapResult{
		To: c.To, From: from, Rewrapped: moved.Rewrapped, AlreadyThere: moved.AlreadyThere, Changed: moved.Changed,
		Failed: each(moved.Failed, func(f acts.RewrapFailure) rewrapFailure { return rewrapFailure(f) }), Seconds: s.now().Sub(began).Round(time.Second / 10).Seconds(),
	}
	if shown := result.show(s.out); err == nil {
		err = shown
	}
	return err
}

// sources are the keys from which credentials are moved. A record's own word about its key
// is not enough: see seal.NewRewrapper.
func (c credentialRewrap) sources(o target.Outputs) ([]arguments.KeyARN, error) {
	if c.Rate < 1 {
		return nil, acts.UsageError("--rate must be at least 1")
	}
	if string(c.To) != o.SealingKeyArn {
		return nil, acts.Refusal(fmt.Sprintf("new credentials are sealed under %s, not under %s: deploy with NextSealingKeyArn first", o.SealingKeyArn, c.To))
	}
	if len(c.From) > 0 {
		return c.From, nil
	}
	if string(c.To) == o.OwnSealingKeyArn {
		return nil, acts.UsageError("--to is the stack's own key: name with --from the key that credentials are under now")
	}
	return []arguments.KeyARN{arguments.KeyARN(o.OwnSealingKeyArn)}, nil
}

// showCounts shows the number of credentials under each key, and the keys from which a run
// would move them.
func (c credentialRewrap) showCounts(s *session, from []string, found map[string]int) error {
	var views []surveyView
	for _, key := range slices.Sorted(maps.Keys(found)) {
		view := surveyView{Key: arguments.KeyARN(key), Credentials: found[key], Status: "refused: name the key with --from if it is yours"}
		if key == string(c.To) {
			view.Status = "already there"
		} else if slices.Contains(from, key) {
			view.Status = "to be rewrapped"
		}
		views = append(views, view)
	}
	return output.List(s.out, views, "key", "credentials", "status")
}

func (v rewrapResult) show(o output.Writer) error {
	v.Failures = len(v.Failed)
	if err := output.One(o, v); err != nil || o.JSON || len(v.Failed) == 0 {
		return err
	}
	return output.List(o, v.Failed, "credential", "workspace", "reason")
}
