// Package spelling finds the known name that is meant by a misspelt one.
package spelling

import (
	"strings"
	"unicode/utf8"
)

const (
	// farthest is the largest edit distance of a misspelt name.
	farthest = 3
	// longest is the length in bytes of the longest name that is compared.
	longest = 255
	// leastPart is the shortest part of a name that may stand for the name.
	leastPart = 4
)

// Nearest returns the known name that was meant, or "": the one with the smallest edit
// distance; else one that ends the name, as "key" ends "apiKey"; else one that contains
// it, as "allowed_models" contains "model". For a name of more than 255 bytes it is "".
func Nearest(name string, known []string) string {
	if len(name) > longest {
		return ""
	}
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
	for _, candidate := range known {
		if strings.HasSuffix(sent, letters(candidate)) {
			return candidate
		}
	}
	for _, candidate := range known {
		if len(sent) >= leastPart && strings.Contains(letters(candidate), sent) {
			return candidate
		}
	}
	return ""
}

// letters returns the ASCII letters and digits of the name, in lower case.
func letters(name string) string {
	return strings.Map(func(c rune) rune {
		if c = lower(c); 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			return c
		}
		return -1
	}, name)
}

func lower(c rune) rune {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// distance is the Levenshtein distance without regard to ASCII case. It is farthest+1 for a
// name that is longer than b by more.
func distance(a, b string) int {
	if utf8.RuneCountInString(a) > len(b)+farthest {
		return farthest + 1
	}
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for _, ca := range a {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			change := diagonal
			if lower(ca) != lower(rune(b[j])) {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
