// Package byok keeps bring-your-own-key provider credentials: what one is, what
// makes a request for one valid, and how it is stored.
//
// It guards the provider key, which goes in and never comes out: it is sealed
// for its account, workspace, credential and provider, and all that is shown of
// it is a label computed before it was sealed. It trusts its caller to say who
// the account is and that the workspace is its own and live.
//
// # As stored
//
// A credential is one item of the credentials table. For whoever opens it, the
// platform's router first of all, these attributes matter:
//
//	pk          workspace#<workspace id>
//	sk          credential#<credential id>
//	v           1, the version of this layout
//	account, workspace, id, provider
//	            what the key is sealed for
//	disabled    whether it may not be used
//	seal        a map: format (number), key_arn (string), and the binaries
//	            wrapped_key, nonce and ciphertext, as package seal tells
//
// The others are named as in the API. The seal vouches for the key and its
// place, and for no other attribute. A reader opens it for the account,
// workspace, credential and provider that he means, not for those that the item
// names.
package byok

import (
	"time"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/secret"
)

// Settings is what a caller chooses about a credential, the provider key aside.
type Settings struct {
	Provider string
	Name     string
	// A nil list restricts nothing; an empty one allows nothing.
	AllowedAPIKeyHashes []string
	AllowedModels       []string
	AllowedUserIDs      []string
	Disabled            bool
	BYOKOnly            bool
	Fallback            bool
	Required            bool
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
