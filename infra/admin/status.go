package main

import (
	"cmp"
	"context"
	"strings"

	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/ids"
)

type statusCommand struct {
	Account ids.Account `env:"SIGNALBOX_ACCOUNT" placeholder:"ID" help:"The account that would be meant."`
}

type statusView struct {
	Target   string          `json:"target"`
	Status   string          `json:"status"`
	Region   string          `json:"region"`
	Account  output.Optional `json:"account_id"`
	Identity output.Optional `json:"aws_identity"`
	Tables   []string        `json:"tables"`
	Bucket   string          `json:"bucket"`
	Key      string          `json:"sealing_key"`
	Version  string          `json:"admin_version"`
}

// Run shows the target of the other commands.
func (c statusCommand) Run(_ context.Context, s *session) error {
	t := s.target
	view := statusView{
		Target: t.Name, Status: t.Status, Region: t.Config.Region, Account: output.Optional(c.Account), Identity: output.Optional(t.Identity),
		Tables: []string{t.Outputs.AccessTableName, t.Outputs.CredentialsTableName, t.Outputs.SyncJobsTableName},
		Bucket: t.Outputs.FilesBucketName, Key: t.Outputs.SealingKeyArn, Version: version,
	}
	if t.IsLocal() {
		view.Account, view.Status = output.Optional(cmp.Or(c.Account, t.Demo())), "its engines answer"
		if silent := t.Silent(); len(silent) > 0 {
			view.Status = "no answer from " + strings.Join(silent, " and ")
		}
	}
	return output.One(s.out, view,
		output.NewColumn("target", func(v statusView) string { return v.Target }),
		output.NewColumn("status", func(v statusView) string { return v.Status }),
		output.NewColumn("region", func(v statusView) string { return v.Region }),
		output.NewColumn("account", func(v statusView) string { return string(v.Account) }),
		output.NewColumn("AWS identity", func(v statusView) string { return string(v.Identity) }),
		output.NewColumn("tables", func(v statusView) string { return strings.Join(v.Tables, ", ") }),
		output.NewColumn("bucket", func(v statusView) string { return v.Bucket }),
		output.NewColumn("sealing key", func(v statusView) string { return v.Key }),
		output.NewColumn("admin", func(v statusView) string { return v.Version }),
	)
}
