package byok

import (
	_ "embed"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The bounds of a credential (spec, section 8, and the contract).
const (
	maxKey      = 32768 // bytes
	maxName     = 255   // code points
	maxListed   = 100
	maxElement  = 255 // code points
	hashLetters = 64
)

//go:embed providers.txt
var providers string

// Problem names one fault of a new credential.
type Problem struct {
	// Path is a JSON pointer to the member, or to an element of it.
	Path string
	// Message repeats nothing of the value.
	Message string
}

// Problems is everything that is wrong with a new credential by itself. It is
// all that a caller could have known beforehand; who owns what is not asked.
func (n New) Problems() []Problem {
	var p problems
	p.key(n.Key.Reveal())
	if !isProvider(n.Provider) {
		p.add("/provider", "must be one of the provider slugs, in lower case")
	}
	if utf8.RuneCountInString(n.Name) > maxName {
		p.add("/name", "must have at most 255 characters")
	}
	p.hashes(n.AllowedAPIKeyHashes)
	p.list("/allowed_models", n.AllowedModels)
	p.list("/allowed_user_ids", n.AllowedUserIDs)
	if n.BYOKOnly && n.Fallback {
		p.add("/is_byok_only", "cannot be combined with is_fallback")
	}
	return p
}

func isProvider(slug string) bool {
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
		p.add("/key", "must have at least 1 character")
	case len(key) > maxKey:
		p.add("/key", "must have at most 32768 bytes")
	}
}

func (p *problems) hashes(hashes []string) {
	const path = "/allowed_api_key_hashes"
	if hashes != nil && len(hashes) == 0 || len(hashes) > maxListed {
		p.add(path, "must have 1 to 100 elements, or be null")
	}
	for i, h := range hashes {
		if !isHash(h) {
			p.add(path+"/"+strconv.Itoa(i), "must be 64 lower-case hexadecimal digits")
		}
	}
}

func (p *problems) list(path string, elements []string) {
	if len(elements) > maxListed {
		p.add(path, "must have at most 100 elements")
	}
	for i, e := range elements {
		if e == "" || utf8.RuneCountInString(e) > maxElement {
			p.add(path+"/"+strconv.Itoa(i), "must have 1 to 255 characters")
		}
	}
}

func isHash(s string) bool {
	return len(s) == hashLetters && strings.Trim(s, "0123456789abcdef") == ""
}
