// Package byok keeps bring-your-own-key provider credentials. It checks and stores new
// ones. The files named operator*.go are for the operator's command, and router.go is
// for the platform's router.
//
// It protects the provider key, which is never returned: it is sealed for its
// account, workspace, credential and provider. Only a label is shown, computed
// before the key was sealed. The caller has checked that the workspace is
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
// The other attributes are named as in the API, except key_form (see Form). The seal
// authenticates the key and its place, and no other attribute. A reader opens it for the
// account, workspace, credential and provider that it expects, not for those that the item
// names.
package byok

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/issues"
	"signalbox.dev/shared/seal"
	"signalbox.dev/shared/secret"
	"signalbox.dev/shared/spelling"
)

// Settings are the caller's choices about a credential, the provider key aside.
// Each is stored under its name in the API, a nil one as NULL. The operator's command
// shows each under the same name, except Disabled, which it shows as the state.
//
// Two credentials that differ in a setting cannot supersede each other, since a router
// may decide by it. If you add a text for people, add it to the exceptions in
// differences.
type Settings struct {
	Provider string `dynamodbav:"provider" json:"provider"`
	Name     string `dynamodbav:"name" json:"name"`
	Disabled bool   `dynamodbav:"disabled" json:"disabled"`
	BYOKOnly bool   `dynamodbav:"is_byok_only" json:"is_byok_only"`
	Fallback bool   `dynamodbav:"is_fallback" json:"is_fallback"`
	Required bool   `dynamodbav:"is_required" json:"is_required"`
	// A nil list restricts nothing; an empty one allows nothing.
	AllowedAPIKeyHashes []ids.KeyHash `dynamodbav:"allowed_api_key_hashes" json:"allowed_api_key_hashes"`
	AllowedModels       []string      `dynamodbav:"allowed_models" json:"allowed_models"`
	AllowedUserIDs      []string      `dynamodbav:"allowed_user_ids" json:"allowed_user_ids"`
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
	// Form, like the label, is computed before the key is sealed. Lists show it.
	Form      Form
	CreatedAt time.Time // whole seconds
	SortOrder int64     // lower is tried first; unique within workspace and provider
}

// Binding is the place that the key of the credential is sealed for.
func (c Credential) Binding() seal.Binding {
	return seal.Binding{Account: c.Account, Workspace: c.Workspace, Credential: c.ID, Provider: c.Provider}
}

const (
	unlabelled   = "..."
	labelMinimum = 16 // characters of the key
	labelHead    = 3
	labelTail    = 4
)

// Label is the mask of a provider key: its first 3 characters, "..." and its last 4
// ("sk-...AbCd"). The key must have 16 or more characters, all U+0021 to U+007E, and
// must not begin with {, [ or ". For any other key the label is "...". It shows at
// most 7 characters of a key, and always less than half.
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

// Form says whether a header carries a stored key, and whether it looks like a key with
// something pasted around it. It is computed once, when the key is stored.
type Form string

const (
	// Header means that an HTTP header carries the key unchanged to any server.
	Header Form = "header"
	// Odd means that a header carries it, but most providers have no such keys. Perhaps
	// quotes, "Bearer " or NAME= were pasted with it.
	Odd Form = "odd"
	// Document means a service account or a set of keys: it begins with { or [.
	Document Form = "document"
	// SignalboxKey means that an API key of this service stands in the key. A router would
	// send it to a provider. New credentials are refused; a row stored before that rule is
	// recognised by its label, if the API key stands alone.
	SignalboxKey Form = "signalbox_key"
	// NoHeader means any other key that a header would change, or not carry. Most were
	// pasted with a line break, a byte order mark or an invisible space.
	NoHeader Form = "no_header"
)

// OddCharacters make a key odd wherever they stand. Colons and the padding of base64 do not.
const OddCharacters = " \"'`,;<>\\"

// FormOf returns the form of a key. A header carries visible ASCII, and spaces within it.
func FormOf(key []byte) Form {
	if holdsAPIKey(key) {
		return SignalboxKey
	}
	if start := bytes.TrimLeft(key, " \t\r\n"); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		return Document
	}
	for _, b := range key {
		if b < ' ' || b > '~' {
			return NoHeader
		}
	}
	if len(key) == 0 || key[0] == ' ' || key[len(key)-1] == ' ' {
		return NoHeader
	}
	if bytes.ContainsAny(key, OddCharacters) || isAssignment(key) {
		return Odd
	}
	return Header
}

// isAssignment reports whether the key begins with NAME= and a value, as in a shell's file.
func isAssignment(key []byte) bool {
	const letters, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_", "0123456789"
	name, value, _ := bytes.Cut(key, []byte("="))
	isName := len(name) > 0 && strings.IndexByte(digits, name[0]) < 0 && len(bytes.Trim(name, letters+digits)) == 0
	isPadding := len(value) == 0 || value[0] == '='
	return isName && !isPadding
}

// apiKeyLast are the last characters of API keys: 43 hold 258 bits, and the last two are 0.
const apiKeyLast = "AEIMQUYcgkosw048" //nolint:gosec // no key

// holdsAPIKey reports whether the published pattern of API keys matches in the text. A regular
// expression would take 100 times as long for a text of many prefixes.
func holdsAPIKey(text []byte) bool {
	inWord := func(at int) bool { return at >= 0 && at < len(text) && (isBase64URL(text[at]) && text[at] != '-') }
	for start := 0; ; start += len(ids.APIKeyPrefix) {
		next := bytes.Index(text[start:], []byte(ids.APIKeyPrefix))
		if next < 0 {
			return false
		}
		start += next
		random := text[start+len(ids.APIKeyPrefix):]
		if len(random) < ids.APIKeyRandom || inWord(start-1) || inWord(start+len(ids.APIKeyPrefix)+ids.APIKeyRandom) {
			continue
		}
		random = random[:ids.APIKeyRandom]
		if !slices.ContainsFunc(random, func(c byte) bool { return !isBase64URL(c) }) && strings.IndexByte(apiKeyLast, random[ids.APIKeyRandom-1]) >= 0 {
			return true
		}
	}
}

func isBase64URL(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// isAPIKeyLabel reports whether the label is that of an API key of this service.
func isAPIKeyLabel(label string) bool {
	return strings.HasPrefix(label, ids.APIKeyPrefix[:labelHead]+unlabelled) && strings.IndexByte(apiKeyLast, label[len(label)-1]) >= 0
}

// FitsHeader reports whether a router can send the key in a header.
func (f Form) FitsHeader() bool { return f != Document && f != NoHeader && f != SignalboxKey }

// The bounds of a credential, as in infra/openapi.yaml.
const (
	maxKey     = 32768 // bytes
	maxName    = 255   // code points
	maxListed  = 100
	maxElement = 255 // code points
	hashDigits = 64
)

//go:embed providers.txt
var providers string

// Issues returns every issue of a new credential that can be found without storage.
func (n New) Issues() []issues.Issue {
	var l issueList
	l.key(n.Key.Reveal())
	l.provider(n.Provider)
	if utf8.RuneCountInString(n.Name) > maxName {
		l.add("/name", issues.TooLarge, fmt.Sprintf("must have at most %d characters", maxName))
	}
	l.hashes(n.AllowedAPIKeyHashes)
	l.list("/allowed_models", n.AllowedModels)
	l.list("/allowed_user_ids", n.AllowedUserIDs)
	if n.BYOKOnly && n.Fallback {
		l.add("/is_byok_only", issues.Invalid, "cannot be combined with is_fallback")
	}
	return l
}

// Providers are the slugs of all providers.
func Providers() []string { return strings.Fields(providers) }

// IsProvider reports whether the slug is a provider's.
func IsProvider(slug string) bool { return slices.Contains(Providers(), slug) }

type issueList []issues.Issue

func (l *issueList) add(path string, reason issues.Reason, message string) {
	*l = append(*l, issues.Issue{Path: path, Reason: reason, Message: message})
}

func (l *issueList) element(path string, index int, reason issues.Reason, message string) {
	l.add(path+"/"+strconv.Itoa(index), reason, message)
}

// full reports whether no more issues are shown. A body may have 20,000 elements.
func (l *issueList) full() bool { return len(*l) >= issues.Max }

func (l *issueList) key(key []byte) {
	switch {
	case len(key) == 0:
		l.add("/key", issues.Invalid, "must not be empty")
	case len(key) > maxKey:
		l.add("/key", issues.TooLarge, fmt.Sprintf("must have at most %d bytes", maxKey))
	case FormOf(key) == SignalboxKey:
		l.add("/key", issues.Invalid, "this is an API key of this service; give the key that the provider issued")
	}
}

func (l *issueList) provider(slug string) {
	if IsProvider(slug) {
		return
	}
	message := "must be a slug that the OpenAPI document lists under Provider"
	if nearest := spelling.Nearest(slug, Providers()); nearest != "" {
		message += "; did you mean " + nearest + "?"
	}
	l.add("/provider", issues.Invalid, message)
}

func (l *issueList) hashes(hashes []ids.KeyHash) {
	const path = "/allowed_api_key_hashes"
	message := fmt.Sprintf("must have 1 to %d elements, or be null", maxListed)
	switch {
	case hashes != nil && len(hashes) == 0:
		l.add(path, issues.Invalid, message)
	case len(hashes) > maxListed:
		l.add(path, issues.TooLarge, message)
	}
	message = fmt.Sprintf("must be %d lower-case hexadecimal digits", hashDigits)
	for i, h := range hashes {
		if l.full() {
			return
		}
		if len(h) != hashDigits || strings.Trim(string(h), "0123456789abcdef") != "" {
			l.element(path, i, issues.Invalid, message)
		}
	}
}

func (l *issueList) list(path string, elements []string) {
	if len(elements) > maxListed {
		l.add(path, issues.TooLarge, fmt.Sprintf("must have at most %d elements", maxListed))
	}
	message := fmt.Sprintf("must have 1 to %d characters", maxElement)
	for i, e := range elements {
		switch {
		case l.full():
			return
		case e == "":
			l.element(path, i, issues.Invalid, message)
		case utf8.RuneCountInString(e) > maxElement:
			l.element(path, i, issues.TooLarge, message)
		}
	}
}
