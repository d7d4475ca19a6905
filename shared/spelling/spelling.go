// Package spelling finds the known name that is meant by a misspelt one.
package spelling

import (
	"bytes"
	"unicode/utf8"
)

const (
	// farthest is the largest edit distance of a misspelt name.
	farthest = 3
	// leastPart is the shortest part of a name that may stand for the name.
	leastPart = 4
)

// Nearest returns the known name that was meant, or "": the one with the smallest edit
// distance; else one that ends the name, as "key" ends "apiKey"; else one that contains
// it, as "allowed_models" contains "model". The name may be a secret, so no copy of it
// stays.
func Nearest(name []byte, known []string) string {
	nearest, best := "", farthest+1
	for _, candidate := range known {
		// A name of three letters is within three edits of nearly anything.
		if d := distance(name, candidate); d <= len(candidate)/2 && d < best {
			nearest, best = candidate, d
		}
	}
	if nearest != "" {
		return nearest
	}
	sent := letters(name)
	defer clear(sent)
	for _, candidate := range known {
		if bytes.HasSuffix(sent, letters([]byte(candidate))) {
			return candidate
		}
	}
	for _, candidate := range known {
		if len(sent) >= leastPart && bytes.Contains(letters([]byte(candidate)), sent) {
			return candidate
		}
	}
	return ""
}

// letters returns the ASCII letters and digits of the name, in lower case.
func letters(name []byte) []byte {
	kept := make([]byte, 0, len(name)) // it never grows, because growing would leave a copy
	for _, c := range name {
		if c = byte(lower(rune(c))); 'a' <= c && c <= 'z' || '0' <= c && c <= '9' { //nolint:gosec // it was a byte
			kept = append(kept, c)
		}
	}
	return kept
}

func lower(c rune) rune {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// distance is the Levenshtein distance without regard to case. For a name much longer
// than b it is a lower bound beyond farthest.
func distance(a []byte, b string) int {
	if utf8.RuneCount(a) > len(b)+farthest {
		return len(b) + farthest
	}
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for len(a) > 0 {
		ca, size := utf8.DecodeRune(a)
		a = a[size:]
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			change := diagonal
			if lower(ca) != rune(b[j]) {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
