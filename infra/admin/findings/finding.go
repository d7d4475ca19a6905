package findings

import (
	"context"

	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
)

// Who deals with a finding.
const (
	ByRepair   = "repair"
	ByOperator = "operator"
	ByNone     = "none" // no inconsistency, but worth knowing
)

// Finding is something that the tables should not hold, or have lost.
type Finding struct {
	Kind    string          `json:"kind"` // key, workspace, list, account, counter, credential or item
	ID      string          `json:"id"`
	Account output.Optional `json:"account_id"`
	Problem string          `json:"problem"`
	By      string          `json:"by"`
	Remedy  string          `json:"remedy"`
	Outcome output.Optional `json:"outcome"` // of the repair, once it was made

	Action string                                      `json:"-"` // as audit lines name the repair
	Repair func(context.Context, *auth.Registry) error `json:"-"`
}

// Count counts findings by who deals with them.
func Count(found []Finding) map[string]int {
	counts := map[string]int{}
	for _, f := range found {
		counts[f.By]++
	}
	return counts
}

// Show lists findings.
func Show(o output.Writer, found []Finding) error {
	return output.List(o, found,
		output.NewColumn("KIND", func(f Finding) string { return f.Kind }),
		output.NewColumn("ID", func(f Finding) string { return f.ID }),
		output.NewColumn("ACCOUNT", func(f Finding) string { return string(f.Account) }),
		output.NewColumn("PROBLEM", func(f Finding) string { return f.Problem }),
		output.NewColumn("BY", func(f Finding) string { return f.By }),
		output.NewColumn("REMEDY", func(f Finding) string { return f.Remedy }),
		output.NewColumn("OUTCOME", func(f Finding) string { return string(f.Outcome) }),
	)
}
