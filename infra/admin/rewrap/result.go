package rewrap

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/ids"
)

// Result is the result of a run.
type Result struct {
	To           arguments.KeyARN   `json:"to"`
	From         []arguments.KeyARN `json:"from"`
	Rewrapped    int                `json:"rewrapped"`
	AlreadyThere int                `json:"already_there"`
	Changed      int                `json:"gone_meanwhile"`
	Failed       []Failure          `json:"failed"`
	Seconds      float64            `json:"seconds"`
}

// Failure is a credential that could not be moved, and why.
type Failure struct {
	Workspace ids.Workspace  `json:"workspace_id"`
	ID        ids.Credential `json:"id"`
	Reason    string         `json:"reason"`
}

// surveyView is how many credentials are under one key.
type surveyView struct {
	Key         arguments.KeyARN `json:"key"`
	Credentials int              `json:"credentials"`
	Status      string           `json:"status"`
}

// ShowSurvey shows how many credentials are under each key, and which of the keys a run
// would take them from.
func ShowSurvey(o output.Writer, to arguments.KeyARN, from []arguments.KeyARN, found map[arguments.KeyARN]int) error {
	var views []surveyView
	for _, key := range slices.Sorted(maps.Keys(found)) {
		view := surveyView{Key: key, Credentials: found[key], Status: "refused: name the key with --from if it is yours"}
		if key == to {
			view.Status = "already there"
		} else if slices.Contains(from, key) {
			view.Status = "to be rewrapped"
		}
		views = append(views, view)
	}
	return output.List(o, views,
		output.NewColumn("KEY", func(v surveyView) string { return string(v.Key) }),
		output.NewColumn("CREDENTIALS", func(v surveyView) string { return strconv.Itoa(v.Credentials) }),
		output.NewColumn("STATUS", func(v surveyView) string { return v.Status }),
	)
}

// Show shows the result.
func (v Result) Show(o output.Writer) error {
	count := func(title string, n int) output.Column[Result] {
		return output.NewColumn[Result](title, func(Result) string { return strconv.Itoa(n) })
	}
	took := time.Duration(v.Seconds * float64(time.Second)).Round(time.Second / 10)
	err := output.One(o, v,
		count("rewrapped", v.Rewrapped),
		count("already there", v.AlreadyThere),
		count("gone meanwhile", v.Changed),
		count("failed", len(v.Failed)),
		output.NewColumn("took", func(Result) string { return took.String() }),
	)
	if err != nil || o.ForScripts() || len(v.Failed) == 0 {
		return err
	}
	return output.List(o, v.Failed,
		output.NewColumn("WORKSPACE", func(f Failure) string { return string(f.Workspace) }),
		output.NewColumn("CREDENTIAL", func(f Failure) string { return string(f.ID) }),
		output.NewColumn("REASON", func(f Failure) string { return f.Reason }),
	)
}
