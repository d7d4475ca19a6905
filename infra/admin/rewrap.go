package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/shared/seal"
)

// credentialRewrap moves the credentials of all accounts, so it has no flag for one.
type credentialRewrap struct {
	To     arguments.KeyARN   `required:"" placeholder:"ARN" help:"The key to move to. New credentials must be sealed under it already."`
	From   []arguments.KeyARN `placeholder:"ARN" help:"A key to move from; can be repeated. If omitted, the stack's own key."`
	Rate   int                `default:"100" placeholder:"N" help:"Rewrap at most N credentials a second (${default}), and read at most as many pages of 50."`
	DryRun bool               `help:"Only count the credentials that would be rewrapped."`
}

// surveyView is the number of credentials under one key.
type surveyView struct {
	Key         string `json:"key" list:"key,short"`
	Credentials int    `json:"credentials" list:"credentials"`
	Status      string `json:"status" list:"status,16"`
}

func (c credentialRewrap) Run(ctx context.Context, s *session) error {
	sources, err := c.sources(s.target.Outputs)
	if err != nil {
		return err
	}
	run := s.NewRewrap(s.wrappedKeys, seal.NewRewrapper(s.kms, string(c.To), sources...), sources, c.Rate)
	found, err := run.CountByKey(ctx)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.showCounts(s, sources, found)
	}
	result, err := run.Run(ctx, found)
	if acts.Is[acts.Refusal](err) {
		return err // nothing was begun
	}
	return cmp.Or(err, showRewrap(s.out, result))
}

// sources are the keys from which credentials are moved. A record's own word about its key
// is not enough: see seal.NewRewrapper.
func (c credentialRewrap) sources(o target.Outputs) ([]string, error) {
	if c.Rate < 1 {
		return nil, acts.UsageError("--rate must be at least 1")
	}
	if string(c.To) != o.SealingKeyArn {
		return nil, acts.Refusal(fmt.Sprintf("new credentials are sealed under %s, not under %s: deploy with NextSealingKeyArn first", o.SealingKeyArn, c.To))
	}
	if len(c.From) > 0 {
		return each(c.From, func(key arguments.KeyARN) string { return string(key) }), nil
	}
	if string(c.To) == o.OwnSealingKeyArn {
		return nil, acts.UsageError("--to is the stack's own key: name with --from the key that credentials are under now")
	}
	return []string{o.OwnSealingKeyArn}, nil
}

// showCounts shows the number of credentials under each key, and the keys from which a run
// would move them.
func (c credentialRewrap) showCounts(s *session, from []string, found map[string]int) error {
	var views []surveyView
	for _, key := range slices.Sorted(maps.Keys(found)) {
		view := surveyView{Key: key, Credentials: found[key], Status: "refused: name the key with --from if it is yours"}
		if key == string(c.To) {
			view.Status = "already there"
		} else if slices.Contains(from, key) {
			view.Status = "to be rewrapped"
		}
		views = append(views, view)
	}
	return output.List(s.out, views, "key", "credentials", "status")
}

func showRewrap(o output.Writer, result acts.RewrapResult) error {
	if err := output.One(o, result); err != nil || o.JSON || result.Failures == 0 {
		return err
	}
	return output.List(o, result.Failed, "credential", "workspace", "reason")
}
