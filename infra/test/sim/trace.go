package sim

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

type row struct {
	at    time.Duration // virtual, since the run began
	actor *actor
	text  string
}

// widest bounds a column.
const widest = 72

// String is the row. The outcome comes last; the rest is cut to fit.
func (r row) String() string {
	letters := []rune(r.text)
	if len(letters) <= widest {
		return r.text
	}
	outcome := []rune(r.text[max(0, strings.LastIndex(r.text, " → ")):])
	if len(outcome) > widest/2 {
		return string(letters[:widest-1]) + "…"
	}
	return string(letters[:widest-1-len(outcome)]) + "…" + string(outcome)
}

// trace is the run as a table: a column for each actor, a row for each step.
func (r *run) trace() string {
	var heads, lines strings.Builder
	indent := map[*actor]int{}
	next := 0
	_, _ = fmt.Fprintf(&heads, "%8s  ", "ms")
	for _, a := range r.actors {
		width := utf8.RuneCountInString(a.Name)
		for _, row := range r.rows {
			if row.actor == a || row.actor.repeats == a {
				width = max(width, utf8.RuneCountInString(row.String()))
			}
		}
		_, _ = fmt.Fprintf(&heads, "%-*s", width+2, a.Name)
		indent[a] = next
		next += width + 2
	}
	settling := false
	for _, row := range r.rows {
		if row.actor.repeats != nil && !settling {
			settling = true
			_, _ = fmt.Fprintf(&lines, "%8s  then each of them again, one after the other:\n", "")
		}
		_, _ = fmt.Fprintf(&lines, "%8d  %*s%s\n", row.at.Milliseconds(), indent[cmp.Or(row.actor.repeats, row.actor)], "", row)
	}
	return heads.String() + "\n" + lines.String()
}
