package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"signalbox.dev/shared/ids"
)

// credentialRewrap is about the credentials of all accounts: it takes none.
type credentialRewrap struct {
	To     keyARN   `required:"" placeholder:"ARN" help:"The key to move to. New credentials must be sealed under it already."`
	From   []keyARN `placeholder:"ARN" help:"A key to move from; can be repeated. If left out, the stack's own key."`
	Rate   int      `default:"100" placeholder:"N" help:"Move at most N credentials a second (${default}), and read at most as many pages of 50."`
	DryRun bool     `help:"Only count what would be moved."`
}

// keyARN is the ARN of a KMS key. Records keep ARNs, so that no alias or short
// id can be compared with them.
type keyARN string

func parseKeyARN(s string) (keyARN, error) {
	if !regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$`).MatchString(s) {
		return "", fmt.Errorf("%q is not the ARN of a KMS key (arn:aws:kms:REGION:ACCOUNT:key/ID)", s)
	}
	return keyARN(s), nil
}

// rewrapView is what came of a run.
type rewrapView struct {
	To           keyARN          `json:"to"`
	From         []keyARN        `json:"from"`
	Rewrapped    int             `json:"rewrapped"`
	AlreadyThere int             `json:"already_there"`
	Overtaken    int             `json:"gone_meanwhile"`
	Failed       []rewrapFailure `json:"failed"`
	Seconds      float64         `json:"seconds"`
}

type rewrapFailure struct {
	Workspace ids.Workspace  `json:"workspace_id"`
	ID        ids.Credential `json:"id"`
	Reason    string         `json:"reason"`
}

// Run moves all credentials, or counts them. Interrupted anywhere, killed
// included, it may be run again; so may two at once.
func (c credentialRewrap) Run(ctx context.Context, s *session) error {
	from, err := c.sources(s.outputs)
	if err != nil {
		return err
	}
	r := newRemoval(s, c.To, from, c.Rate)
	found, err := r.survey(ctx)
	if err != nil {
		return err
	}
	if c.DryRun {
		return showSurvey(s.out, c.To, from, found)
	}
	attrs := []any{"to", c.To, "from", from}
	s.begin(ctx, "credential.rewrap", attrs...)
	began := s.now()
	err = r.moveAll(ctx, found)
	r.view.Seconds = s.now().Sub(began).Seconds()
	s.audit(ctx, "credential.rewrap", err, append(attrs, "rewrapped", r.view.Rewrapped,
		"already_there", r.view.AlreadyThere, "gone_meanwhile", r.view.Overtaken, "failed", len(r.view.Failed))...)
	if shown := r.view.show(s.out); err == nil {
		err = shown
	}
	return err
}

// sources are the keys that credentials are taken from. What a record says of
// its own key is not enough: see seal.NewRewrapper.
func (c credentialRewrap) sources(o outputs) ([]keyARN, error) {
	if c.Rate < 1 {
		return nil, errRate
	}
	if string(c.To) != o.SealingKeyArn {
		return nil, fmt.Errorf("%w %s, not under %s: deploy with NextSealingKeyArn first", errSealsElsewhere, o.SealingKeyArn, c.To)
	}
	if len(c.From) > 0 {
		return c.From, nil
	}
	if string(c.To) == o.OwnSealingKeyArn {
		return nil, errNoSource
	}
	return []keyARN{keyARN(o.OwnSealingKeyArn)}, nil
}

// surveyView is how many credentials are under one key.
type surveyView struct {
	Key         keyARN `json:"key"`
	Credentials int    `json:"credentials"`
	Fate        string `json:"fate"`
}

func showSurvey(o output, to keyARN, from []keyARN, found map[keyARN]int) error {
	var views []surveyView
	for _, key := range slices.Sorted(maps.Keys(found)) {
		view := surveyView{Key: key, Credentials: found[key], Fate: "refused: name the key with --from if it is yours"}
		if key == to {
			view.Fate = "already there"
		} else if slices.Contains(from, key) {
			view.Fate = "to be moved"
		}
		views = append(views, view)
	}
	return list(o, views,
		column[surveyView]{"KEY", func(v surveyView) string { return string(v.Key) }},
		column[surveyView]{"CREDENTIALS", func(v surveyView) string { return strconv.Itoa(v.Credentials) }},
		column[surveyView]{"FATE", func(v surveyView) string { return v.Fate }},
	)
}

func (v rewrapView) show(o output) error {
	count := func(title string, n int) column[rewrapView] {
		return column[rewrapView]{title, func(rewrapView) string { return strconv.Itoa(n) }}
	}
	took := time.Duration(v.Seconds * float64(time.Second)).Round(time.Second / 10)
	err := one(o, v,
		count("rewrapped", v.Rewrapped),
		count("already there", v.AlreadyThere),
		count("gone meanwhile", v.Overtaken),
		count("failed", len(v.Failed)),
		column[rewrapView]{"took", func(rewrapView) string { return took.String() }},
	)
	if err != nil || o.json || len(v.Failed) == 0 {
		return err
	}
	return list(o, v.Failed,
		column[rewrapFailure]{"WORKSPACE", func(f rewrapFailure) string { return string(f.Workspace) }},
		column[rewrapFailure]{"CREDENTIAL", func(f rewrapFailure) string { return string(f.ID) }},
		column[rewrapFailure]{"REASON", func(f rewrapFailure) string { return f.Reason }},
	)
}
