package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/output"
)

// leakedText reads a leaked key from standard input, with whatever stands around it. Some
// shells write UTF-16. A key is ASCII, so it can be read without the zero bytes.
func (s *session) leakedText(ctx context.Context) (string, error) {
	defer output.HideInput(s.stdin)()
	if s.interactive {
		s.Note("Paste the key, then press Enter and Ctrl-D.")
	}
	input, err := while(ctx, func() ([]byte, error) { return io.ReadAll(s.stdin) })
	if err != nil {
		return "", fmt.Errorf("reading the key: %w", err)
	}
	text := strings.TrimFunc(strings.ReplaceAll(string(input), "\x00", ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError // of a mark of UTF-16
	})
	if text == "" {
		return "", acts.UsageError("standard input is empty")
	}
	return text, nil
}

const (
	shortKey = 8  // characters; no provider's key is shorter
	keyEnd   = 16 // characters; a label shows fewer
)

// keyEnds returns the last characters of each part of a text that may be a provider's key: of the
// whole text, of the strings of a JSON document, of words, and of the part of a word before a
// punctuation mark. It does not look for the beginning of a key, because a label's end decides.
func keyEnds(text string) []string {
	ends := map[string]bool{}
	add := func(part string) {
		if len(part) >= shortKey {
			ends[part[max(0, len(part)-keyEnd):]] = true
		}
	}
	add(text)
	var document any
	if json.Unmarshal([]byte(text), &document) == nil {
		for _, value := range stringsOf(document) {
			add(value)
		}
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r < '!' || r > '~' || strings.ContainsRune("\"'`,;{}[]()<>\\", r) }) {
		for i, r := range word {
			if strings.ContainsRune("=:&?|#@/", r) {
				add(word[:i])
			}
		}
		add(word)
		add(strings.TrimRight(word, ".:!?"))
	}
	return slices.Collect(maps.Keys(ends))
}

func stringsOf(document any) (all []string) {
	switch value := document.(type) {
	case string:
		all = append(all, value)
	case []any:
		for _, element := range value {
			all = append(all, stringsOf(element)...)
		}
	case map[string]any:
		for _, member := range value {
			all = append(all, stringsOf(member)...)
		}
	}
	return all
}
