package api

import "unicode/utf8"

// farthest is how many edits a name may be away from one of ours to be taken
// for a slip of the pen.
const farthest = 3

// unknownMember is the message for a member that is none of ours. The name was
// the caller's, and may be anything, a secret too: no copy of it is made, and
// what is suggested is one of ours.
func unknownMember(name []byte, ours []string) string {
	nearest, best := "", farthest+1
	for _, candidate := range ours {
		// A name of three letters is within three edits of nearly anything.
		if d := distance(name, candidate); d <= len(candidate)/2 && d < best {
			nearest, best = candidate, d
		}
	}
	if nearest == "" {
		return "unknown member"
	}
	return "unknown member; did you mean " + nearest + "?"
}

// distance is Levenshtein's: how many characters must be added, taken out or
// changed. Names much longer than b are simply far.
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
			if ca != rune(b[j]) {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
