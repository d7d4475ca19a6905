package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// outcome is what came of a part.
type outcome struct {
	part string
	rows []row
	// detail is a table of its own, where the part has one.
	detail string
	broken []string
}

// row is one line of the table.
type row struct{ what, done, shown string }

func (o outcome) bad() bool { return len(o.broken) > 0 }

// mostBroken bounds how many broken promises are told of each part.
const mostBroken = 20

// write writes the table, and after it what was broken.
func write(w io.Writer, seed uint64, outcomes []outcome) error {
	for _, o := range outcomes {
		if o.detail != "" {
			if _, err := fmt.Fprintf(w, "\n%s\n", o.detail); err != nil {
				return err
			}
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "\nTORTURE\tOF\tWHAT WAS DONE\tWHAT IT SHOWED\tBROKEN\n") // Flush tells
	for _, o := range outcomes {
		for i, r := range o.rows {
			broken := ""
			if i == len(o.rows)-1 {
				broken = fmt.Sprint(len(o.broken))
			}
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", o.part, r.what, r.done, r.shown, broken)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "seed %d\n", seed); err != nil {
		return err
	}
	for _, o := range outcomes {
		for i, broken := range o.broken {
			if i == mostBroken {
				broken = fmt.Sprintf("and %d more", len(o.broken)-i)
			}
			if i > mostBroken {
				break
			}
			if _, err := fmt.Fprintf(w, "BROKEN %s: %s\n", o.part, broken); err != nil {
				return err
			}
		}
	}
	return nil
}
