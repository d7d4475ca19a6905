package main

import (
	"time"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/issues"
)

// members are the names that a request's body may have.
var members = []string{
	"key", "provider", "name", "workspace_id",
	"allowed_api_key_hashes", "allowed_models", "allowed_user_ids",
	"disabled", "is_byok_only", "is_fallback", "is_required",
}

// decode reads a new credential, and its workspace if the body names one. The object collects
// the issues.
func decode(o *api.Object) (byok.New, ids.Workspace) {
	n := byok.New{
		Key: o.Secret("key"),
		Settings: byok.Settings{
			Provider:            o.Text("provider"),
			AllowedAPIKeyHashes: keyHashes(o.Texts("allowed_api_key_hashes")),
			AllowedModels:       o.Texts("allowed_models"),
			AllowedUserIDs:      o.Texts("allowed_user_ids"),
			Disabled:            o.Bool("disabled"),
			BYOKOnly:            o.Bool("is_byok_only"),
			Fallback:            o.Bool("is_fallback"),
			Required:            o.Bool("is_required"),
		},
	}
	name := o.NullableText("name")
	if name != nil {
		n.Name = *name
	}
	var workspace ids.Workspace
	if o.Has("workspace_id") {
		var ok bool
		if workspace, ok = ids.Parse[ids.Workspace](o.Text("workspace_id")); !ok {
			o.Report("/workspace_id", issues.Invalid, "must be a UUID")
		}
	}
	for _, required := range []string{"key", "provider"} {
		if !o.Has(required) {
			o.Report("/"+required, issues.Required, "is required")
		}
	}
	for _, i := range n.Issues() {
		o.Report(i.Path, i.Reason, i.Message)
	}
	if name == nil { // only now: a wrong provider is no issue of the name
		n.Name = n.Provider
	}
	return n, workspace
}

// keyHashes returns nil for nil: null is not the empty list.
func keyHashes(texts []string) []ids.KeyHash {
	if texts == nil {
		return nil
	}
	hashes := make([]ids.KeyHash, len(texts))
	for i, text := range texts {
		hashes[i] = ids.KeyHash(text)
	}
	return hashes
}

// body is the body of the 201. Every field is present. A field without a value is null.
type body struct {
	Data credential `json:"data"`
}

type credential struct {
	ID                  ids.Credential `json:"id"`
	Name                string         `json:"name"`
	Provider            string         `json:"provider"`
	Label               string         `json:"label"`
	WorkspaceID         ids.Workspace  `json:"workspace_id"`
	CreatedAt           string         `json:"created_at"`
	Disabled            bool           `json:"disabled"`
	IsBYOKOnly          bool           `json:"is_byok_only"`
	IsFallback          bool           `json:"is_fallback"`
	IsRequired          bool           `json:"is_required"`
	AllowedAPIKeyHashes []ids.KeyHash  `json:"allowed_api_key_hashes"`
	AllowedModels       []string       `json:"allowed_models"`
	AllowedUserIDs      []string       `json:"allowed_user_ids"`
	SortOrder           int64          `json:"sort_order"`
}

func newBody(c byok.Credential) body {
	return body{credential{
		ID:                  c.ID,
		Name:                c.Name,
		Provider:            c.Provider,
		Label:               c.Label,
		WorkspaceID:         c.Workspace,
		CreatedAt:           c.CreatedAt.UTC().Format(time.RFC3339),
		Disabled:            c.Disabled,
		IsBYOKOnly:          c.BYOKOnly,
		IsFallback:          c.Fallback,
		IsRequired:          c.Required,
		AllowedAPIKeyHashes: c.AllowedAPIKeyHashes,
		AllowedModels:       c.AllowedModels,
		AllowedUserIDs:      c.AllowedUserIDs,
		SortOrder:           c.SortOrder,
	}}
}
