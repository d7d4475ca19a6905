package main

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// etagOf is the strong entity tag of a body.
func etagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// matches reports whether an If-None-Match names the entity tag (RFC 9110,
// sections 8.8.3 and 13.1.2): "*", or a list of tags compared weakly. A
// malformed list is ignored as a whole.
func matches(headers []string, etag string) bool {
	list := strings.Join(headers, ",")
	if strings.Trim(list, " \t") == "*" {
		return true
	}
	found := false
	for {
		list = strings.TrimLeft(list, " \t,")
		if list == "" {
			return found
		}
		tag, rest, ok := cutTag(list)
		if !ok {
			return false
		}
		found = found || tag == etag
		list = strings.TrimLeft(rest, " \t")
		if list != "" && list[0] != ',' {
			return false
		}
	}
}

// cutTag cuts one entity tag, without its W/, off the front of s.
func cutTag(s string) (tag, rest string, ok bool) {
	s = strings.TrimPrefix(s, "W/")
	if !strings.HasPrefix(s, `"`) {
		return "", "", false
	}
	end := 1 + strings.IndexByte(s[1:], '"')
	if end == 0 {
		return "", "", false
	}
	for i := 1; i < end; i++ {
		if s[i] <= ' ' || s[i] == 0x7f {
			return "", "", false
		}
	}
	return s[:end+1], s[end+1:], true
}
