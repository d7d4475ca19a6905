package main

import (
	"cmp"
	"context"
	"strings"

	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/ids"
)

// version is set by the linker: see the Makefile.
var version = "unknown"

type statusCommand struct {
	Account ids.Account `env:"SIGNALBOX_ACCOUNT" placeholder:"ID" help:"The account that would be meant."`
}

type statusView struct {
	Target   string          `json:"target" title:"target"`
	Status   string          `json:"status" title:"status"`
	Region   string          `json:"region" title:"region"`
	Account  output.Optional `json:"account_id" title:"account"`
	Identity output.Optional `json:"aws_identity" title:"AWS identity"`
	Tables   []string        `json:"tables" title:"tables"`
	Bucket   string          `json:"bucket" title:"bucket"`
	Key      string          `json:"sealing_key" title:"sealing key"`
	Version  string          `json:"admin_version" title:"admin"`
}

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
	return output.One(s.out, view)
}
