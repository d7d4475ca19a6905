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

	"golang.org/x/text/unicode/norm"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
)

// leakedText reads a leaked key from standard input, with whatever stands around it. Some
// shells write UTF-16. A key is ASCII, so it can be read without the zero bytes.
func (s *session) leakedText(ctx context.Context) (string, error) {
	defer output.HideInput(s.stdin)()
	if s.interactive {
		s.note("Paste the key, then press Enter and Ctrl-D.")
	}
	input, err := while(ctx, func() ([]byte, error) { return io.ReadAll(s.stdin) })
	if err != nil {
		return "", fmt.Errorf("reading the key: %w", err)
	}
	text := strings.TrimFunc(strings.ReplaceAll(string(input), "\x00", ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError // of a mark of UTF-16
	})
	if text == "" {
		return "", exit.UsageError("standard input is empty")
	}
	return text, nil
}

// Bounds of a part of a word that has punctuation inside. Without them a long line of base64
// would have millions of parts. Servers refuse a header longer than maxPart.
const (
	maxPart   = 8192 // bytes
	maxPieces = 16   // unless it reaches to the word's end
)

// possibleKeys returns the parts of a text that may be a provider's key: the whole text, the
// strings of a JSON document, words, and parts of words from one punctuation mark to another.
func possibleKeys(text string) []string {
	possible := map[string]bool{text: true}
	var document any
	if json.Unmarshal([]byte(text), &document) == nil {
		for _, value := range stringsOf(document) {
			possible[value] = true
		}
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r < '!' || r > '~' || strings.ContainsRune("\"'`,;{}[]()<>\\", r) }) {
		starts, ends := []int{0}, []int(nil)
		for i, r := range word {
			if strings.ContainsRune("=:&?|#@/", r) {
				starts, ends = append(starts, i+1), append(ends, i)
			}
		}
		ends = append(ends, len(word))
		for first, start := range starts {
			for i, end := range ends[first:min(first+maxPieces, len(ends))] {
				if i == 0 || end-start <= maxPart {
					possible[word[start:end]] = true
				}
			}
			if rest := word[start:]; first == 0 || len(rest) <= maxPart {
				possible[rest], possible[strings.TrimRight(rest, ".:!?")] = true, true
			}
		}
	}
	return slices.Collect(maps.Keys(possible))
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

// folded returns a name without what differs between two spellings of it: composed and
// decomposed letters, upper and lower case, and kinds and numbers of blanks.
func folded(name string) string {
	return strings.Join(strings.Fields(strings.ToLower(norm.NFKC.String(name))), " ")
}
