// Package byok keeps bring-your-own-key provider credentials: what one is, what
// makes a request for one valid, and how it is stored.
//
// It protects the provider key, which is never returned: it is sealed for its
// account, workspace, credential and provider, and only a label of it, computed
// before it was sealed, is shown. The caller has checked that the workspace is
// live and the account's own.
//
// # As stored
//
// A credential is one item of the credentials table. To open it, as the
// platform's router does, these attributes are needed:
//
//	pk          workspace#<workspace id>
//	sk          credential#<credential id>
//	v           1, the version of this layout
//	account, workspace, id, provider
//	            what the key is sealed for
//	disabled    whether it may not be used
//	seal        a map: format (number), key_arn (string), and the binaries
//	            wrapped_key, nonce and ciphertext; package seal defines them
//
// The others are named as in the API. The seal authenticates the key and its
// place, and no other attribute. A reader opens it for the account, workspace,
// credential and provider that it expects, not for those that the item names.
package byok

import (
	"time"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/secret"
)

// Settings is what a caller chooses about a credential, the provider key aside.
// Each is stored under its name in the API, a nil list as NULL.
type Settings struct {
	Provider string `dynamodbav:"provider"`
	Name     string `dynamodbav:"name"`
	// A nil list restricts nothing; an empty one allows nothing.
	AllowedAPIKeyHashes []string `dynamodbav:"allowed_api_key_hashes"`
	AllowedModels       []string `dynamodbav:"allowed_models"`
	AllowedUserIDs      []string `dynamodbav:"allowed_user_ids"`
	Disabled            bool     `dynamodbav:"disabled"`
	BYOKOnly            bool     `dynamodbav:"is_byok_only"`
	Fallback            bool     `dynamodbav:"is_fallback"`
	Required            bool     `dynamodbav:"is_required"`
}

// New is a credential to be created.
type New struct {
	Settings
	Key secret.Bytes
}

// Credential is a stored credential, without its key.
type Credential struct {
	Settings
	ID        ids.Credential
	Account   ids.Account
	Workspace ids.Workspace
	Label     string
	CreatedAt time.Time // whole seconds
	SortOrder int64     // lower is tried first; unique within workspace and provider
}

const (
	unlabelled   = "..."
	labelMinimum = 16 // characters of the key
	labelHead    = 3
	labelTail    = 4
)

// Label is the mask that stands for a provider key: its first 3 characters,
// "..." and its last 4 ("sk-...AbCd") for a key of 16 or more characters, all of
// them U+0021 to U+007E, that does not begin with {, [ or ". For any other key,
// a JSON document or a short one, it is "...". It never shows more than 7
// characters of a key, nor as many as half of it.
func Label(key []byte) string {
	if len(key) < labelMinimum || key[0] == '{' || key[0] == '[' || key[0] == '"' {
		return unlabelled
	}
	for _, c := range key {
		if c < '!' || c > '~' {
			return unlabelled
		}
	}
	return string(key[:labelHead]) + unlabelled + string(key[len(key)-labelTail:])
}
