package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// output shows results: tables and sentences for people, JSON for scripts.
type output struct {
	to   io.Writer
	json bool
	// width is the number of columns of the terminal; 0 where there is none.
	width int
}

// column is one column of a table of T.
type column[T any] struct {
	title string
	cell  func(T) string
}

// list shows rows as a table, or as a JSON array. What a terminal is too narrow
// for is shown row by row, a line for each column.
func list[T any](o output, rows []T, columns ...column[T]) error {
	if o.json {
		if rows == nil {
			rows = []T{}
		}
		return o.encode(rows)
	}
	shown := table(rows, columns)
	if !o.fits(shown) && len(rows) > 0 {
		var b strings.Builder
		for i, row := range rows {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(card(row, columns))
		}
		shown = b.String()
	}
	_, err := io.WriteString(o.to, shown)
	return err
}

// table is a line of titles and a line for each row.
func table[T any](rows []T, columns []column[T]) string {
	return aligned(func(w io.Writer) {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.title
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
		for _, row := range rows {
			for i, c := range columns {
				cells[i] = printable(c.cell(row))
			}
			_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	})
}

// card is a line for each column of a row.
func card[T any](row T, columns []column[T]) string {
	return aligned(func(w io.Writer) {
		for _, c := range columns {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", c.title, printable(c.cell(row)))
		}
	})
}

// aligned puts what write separates with tabs into columns. Memory takes all
// that is written to it.
func aligned(write func(io.Writer)) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	write(w)
	_ = w.Flush()
	return b.String()
}

// fits reports whether the terminal, if there is one, is wide enough for a text.
func (o output) fits(text string) bool {
	for line := range strings.Lines(text) {
		if o.width > 0 && utf8.RuneCountInString(strings.TrimRight(line, "\n")) > o.width {
			return false
		}
	}
	return true
}

// one shows a single thing, a line for each column, or as a JSON object.
func one[T any](o output, row T, columns ...column[T]) error {
	if o.json {
		return o.encode(row)
	}
	_, err := io.WriteString(o.to, card(row, columns))
	return err
}

// say writes a sentence for people, and the value for scripts.
func (o output) say(value any, format string, args ...any) error {
	if o.json {
		return o.encode(value)
	}
	_, err := fmt.Fprintf(o.to, format+"\n", args...)
	return err
}

func (o output) encode(value any) error {
	encoder := json.NewEncoder(o.to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// printable keeps what customers have chosen, names above all, from moving the
// cursor or breaking the table.
func printable(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return "-"
	}
	return s
}

// optional is a text in results: null where there is none.
type optional string

// MarshalJSON implements json.Marshaler.
func (o optional) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(o))
}

// when is a time in results, RFC 3339 in UTC; the zero time is none.
func when(t time.Time) optional {
	if t.IsZero() {
		return ""
	}
	return optional(t.UTC().Format(time.RFC3339))
}
