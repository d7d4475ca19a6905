package byok

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The bounds of a credential, as in infra/openapi.yaml.
const (
	maxKey      = 32768 // bytes
	maxName     = 255   // code points
	maxListed   = 100
	maxElement  = 255 // code points
	hashLetters = 64
)

//go:embed providers.txt
var providers string

// Problem is one fault of a new credential.
type Problem struct {
	// Path is a JSON pointer to the member, or to an element of it.
	Path string
	// Message contains no part of the value.
	Message string
}

// Problems returns every fault of a new credential that can be found without
// storage.
func (n New) Problems() []Problem {
	var p problems
	p.key(n.Key.Reveal())
	if !IsProvider(n.Provider) {
		p.add("/provider", "must be a known provider slug, in lower case")
	}
	if utf8.RuneCountInString(n.Name) > maxName {
		p.add("/name", fmt.Sprintf("must have at most %d characters", maxName))
	}
	p.hashes(n.AllowedAPIKeyHashes)
	p.list("/allowed_models", n.AllowedModels)
	p.list("/allowed_user_ids", n.AllowedUserIDs)
	if n.BYOKOnly && n.Fallback {
		p.add("/is_byok_only", "cannot be combined with is_fallback")
	}
	return p
}

// IsProvider reports whether a credential can be for the provider of that slug.
func IsProvider(slug string) bool {
	for known := range strings.FieldsSeq(providers) {
		if slug == known {
			return true
		}
	}
	return false
}

type problems []Problem

func (p *problems) add(path, message string) {
	*p = append(*p, Problem{Path: path, Message: message})
}

func (p *problems) key(key []byte) {
	switch {
	case len(key) == 0:
		p.add("/key", "must not be empty")
	case len(key) > maxKey:
		p.add("/key", fmt.Sprintf("must have at most %d bytes", maxKey))
	}
}

func (p *problems) hashes(hashes []string) {
	const path = "/allowed_api_key_hashes"
	if hashes != nil && len(hashes) == 0 || len(hashes) > maxListed {
		p.add(path, fmt.Sprintf("must have 1 to %d elements, or be null", maxListed))
	}
	for i, h := range hashes {
		if !isHash(h) {
			p.add(path+"/"+strconv.Itoa(i), fmt.Sprintf("must be %d lower-case hexadecimal digits", hashLetters))
		}
	}
}

func (p *problems) list(path string, elements []string) {
	if len(elements) > maxListed {
		p.add(path, fmt.Sprintf("must have at most %d elements", maxListed))
	}
	for i, e := range elements {
		if e == "" || utf8.RuneCountInString(e) > maxElement {
			p.add(path+"/"+strconv.Itoa(i), fmt.Sprintf("must have 1 to %d characters", maxElement))
		}
	}
}

func isHash(s string) bool {
	return len(s) == hashLetters && strings.Trim(s, "0123456789abcdef") == ""
}
