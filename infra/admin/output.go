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
)

// output shows results: tables and sentences for people, JSON for scripts.
type output struct {
	to   io.Writer
	json bool
}

// column is one column of a table of T.
type column[T any] struct {
	title string
	cell  func(T) string
}

// list shows rows as a table, or as a JSON array.
func list[T any](o output, rows []T, columns ...column[T]) error {
	if o.json {
		if rows == nil {
			rows = []T{}
		}
		return o.encode(rows)
	}
	table := tabwriter.NewWriter(o.to, 0, 0, 2, ' ', 0)
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	// The table writer keeps what it is given: the one error comes from Flush.
	_, _ = fmt.Fprintln(table, strings.Join(titles, "\t"))
	for _, row := range rows {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = printable(c.cell(row))
		}
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// one shows a single thing, a line for each column, or as a JSON object.
func one[T any](o output, row T, columns ...column[T]) error {
	if o.json {
		return o.encode(row)
	}
	table := tabwriter.NewWriter(o.to, 0, 0, 2, ' ', 0)
	for _, c := range columns {
		_, _ = fmt.Fprintf(table, "%s\t%s\n", c.title, printable(c.cell(row)))
	}
	return table.Flush()
}

// say tells people a sentence, and scripts the value.
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
