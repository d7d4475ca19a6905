package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"signalbox.dev/infra/admin/exit"
)

// leakedText reads a leaked key from standard input, with whatever stands around it.
func (s *session) leakedText(ctx context.Context) (string, error) {
	if s.interactive {
		s.note("Paste the key, then press Enter and Ctrl-D.")
	}
	input, err := while(ctx, func() ([]byte, error) { return io.ReadAll(s.stdin) })
	if err != nil {
		return "", fmt.Errorf("reading the key: %w", err)
	}
	text := strings.TrimFunc(decodedText(input), func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
	if text == "" {
		return "", exit.UsageError("standard input is empty")
	}
	return text, nil
}

// decodedText decodes UTF-16, which some shells write. It leaves other input as it is.
func decodedText(input []byte) string {
	var order binary.ByteOrder
	switch {
	case len(input) < 2 || len(input)%2 != 0:
		return string(input)
	case bytes.HasPrefix(input, []byte{0xff, 0xfe}) || input[1] == 0:
		order = binary.LittleEndian
	case bytes.HasPrefix(input, []byte{0xfe, 0xff}) || input[0] == 0:
		order = binary.BigEndian
	default:
		return string(input)
	}
	units := make([]uint16, len(input)/2)
	for i := range units {
		units[i] = order.Uint16(input[2*i:])
	}
	return string(utf16.Decode(units))
}

// possibleKeys returns the parts of a text that may be a provider's key: the whole text, the
// strings of a JSON document, words, and the value after = or : in a word.
func possibleKeys(text string) []string {
	possible := []string{text}
	var document any
	if json.Unmarshal([]byte(text), &document) == nil {
		possible = append(possible, stringsOf(document)...)
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`,;{}[]()<>", r) }) {
		possible = append(possible, word)
		if i := strings.IndexAny(word, "=:"); i >= 0 {
			possible = append(possible, word[i+1:])
		}
	}
	slices.Sort(possible)
	return slices.Compact(possible)
}

// stringsOf returns all strings in a decoded JSON document.
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
