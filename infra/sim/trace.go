package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// row is one row of a trace.
type row struct {
	at    time.Duration // virtual, since the run began
	actor *actor
	text  string
}

// widest is how much of a row is shown.
const widest = 90

func (r row) String() string {
	if letters := []rune(r.text); len(letters) > widest {
		return string(letters[:widest]) + "…"
	}
	return r.text
}

// trace is the run as a table: a column for each actor, a row for each step.
func (r *run) trace() string {
	var heads, lines strings.Builder
	indent := map[*actor]int{}
	next := 0
	_, _ = fmt.Fprintf(&heads, "%8s  ", "ms")
	columns := slices.DeleteFunc(slices.Clone(r.actors), func(a *actor) bool { return a.repeats != nil })
	for _, a := range columns {
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
