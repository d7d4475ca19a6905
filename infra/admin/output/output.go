// Package output shows results: tables and sentences for people, JSON for scripts.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// Writer writes results.
type Writer struct {
	To io.Writer
	// JSON and YAML are for scripts. Without them there are tables and sentences.
	JSON, YAML bool
	// Width is the number of columns of the terminal; 0 if there is none.
	Width int
	// Limit bounds the rows of a list; 0 means no bound. Note says that some are left
	// out.
	Limit int
	Note  func(format string, args ...any)
}

// ForScripts reports whether a script reads the results.
func (o Writer) ForScripts() bool { return o.JSON || o.YAML }

// Column is one column of a table of T.
type Column[T any] struct {
	Title string
	cell  func(T) string
}

// NewColumn returns a column with a title and the cell of a row.
func NewColumn[T any](title string, cell func(T) string) Column[T] {
	return Column[T]{title, cell}
}

// Columns returns the columns with these titles, or all. A field with a tag `title` is a
// column.
func Columns[T any](titles ...string) (chosen []Column[T]) {
	all := map[string]Column[T]{}
	for field := range reflect.TypeFor[T]().Fields() {
		if title, ok := field.Tag.Lookup("title"); ok {
			all[title] = NewColumn(title, func(row T) string { return cell(reflect.ValueOf(row).FieldByIndex(field.Index)) })
			if len(titles) == 0 {
				chosen = append(chosen, all[title])
			}
		}
	}
	for _, title := range titles {
		chosen = append(chosen, all[title])
	}
	return chosen
}

// cell is a value in a table.
func cell(v reflect.Value) string {
	switch is := v.Kind(); {
	case is == reflect.Pointer && v.IsNil():
		return ""
	case is == reflect.Pointer:
		return cell(v.Elem())
	case is == reflect.Bool:
		return map[bool]string{true: "yes"}[v.Bool()]
	case is == reflect.Slice:
		cells := make([]string, v.Len())
		for i := range cells {
			cells[i] = cell(v.Index(i))
		}
		return strings.Join(cells, ", ")
	}
	return fmt.Sprint(v)
}

// List shows rows as a table of all columns, or for scripts.
func List[T any](o Writer, rows []T) error { return ListFitting(o, rows, Columns[T]()) }

// ListFitting shows rows with the first columns that fit the terminal. If none do, it
// shows each row with all its columns, a line for each.
func ListFitting[T any](o Writer, rows []T, widest []Column[T], narrower ...[]Column[T]) error {
	if o.Limit > 0 && len(rows) > o.Limit {
		o.Note("%d of %d are shown: leave out --limit for all.", o.Limit, len(rows))
		rows = rows[:o.Limit]
	}
	if o.ForScripts() {
		if rows == nil {
			rows = []T{}
		}
		return o.Encode(rows)
	}
	for _, columns := range append([][]Column[T]{widest}, narrower...) {
		if shown := table(rows, columns); o.fits(shown) || len(rows) == 0 {
			_, err := io.WriteString(o.To, shown)
			return err
		}
	}
	cards := make([]string, len(rows))
	for i, row := range rows {
		cards[i] = card(row, widest)
	}
	_, err := io.WriteString(o.To, strings.Join(cards, "\n"))
	return err
}

// table is a line of titles and a line for each row.
func table[T any](rows []T, columns []Column[T]) string {
	return aligned(func(w io.Writer) {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = strings.ToUpper(c.Title)
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
		for _, row := range rows {
			for i, c := range columns {
				cells[i] = Printable(c.cell(row))
			}
			_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	})
}

// card is a line for each column of a row.
func card[T any](row T, columns []Column[T]) string {
	return aligned(func(w io.Writer) {
		for _, c := range columns {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", c.Title, Printable(c.cell(row)))
		}
	})
}

// aligned puts the tab-separated text of write into columns. Memory takes all that is
// written to it.
func aligned(write func(io.Writer)) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	write(w)
	_ = w.Flush()
	return b.String()
}

// fits reports whether the terminal, if there is one, is wide enough for a text.
func (o Writer) fits(text string) bool {
	for line := range strings.Lines(text) {
		if o.Width > 0 && utf8.RuneCountInString(strings.TrimRight(line, "\n")) > o.Width {
			return false
		}
	}
	return true
}

// One shows a single thing, a line for each column, or as a JSON object. Without columns
// it shows all of them.
func One[T any](o Writer, row T, columns ...Column[T]) error {
	if o.ForScripts() {
		return o.Encode(row)
	}
	if len(columns) == 0 {
		columns = Columns[T]()
	}
	_, err := io.WriteString(o.To, card(row, columns))
	return err
}

// Say writes a sentence for people, and the value for scripts.
func (o Writer) Say(value any, format string, args ...any) error {
	if o.ForScripts() {
		return o.Encode(value)
	}
	_, err := fmt.Fprintf(o.To, format+"\n", args...)
	return err
}

// Encode writes a value as JSON, in one line, or as YAML.
func (o Writer) Encode(value any) error {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	written := escaped(encoded.String())
	if o.YAML {
		var err error
		if written, err = yaml.JSONToYAML(written); err != nil {
			return err
		}
	}
	_, err := o.To.Write(written)
	return err
}

// escaped is the same JSON with every character escaped that could move a terminal's
// cursor, or that YAML refuses.
func escaped(encoded string) []byte {
	var safe []byte
	for _, r := range encoded {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			safe = utf8.AppendRune(safe, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			safe = fmt.Appendf(safe, `\u%04x\u%04x`, high, low)
		default:
			safe = fmt.Appendf(safe, `\u%04x`, r)
		}
	}
	return safe
}

// Count is a number of things, one or several.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Printable keeps texts of customers, names above all, from moving the cursor or
// breaking the table.
func Printable(s string) string {
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

// Optional is a text in results, null if it is empty.
type Optional string

// MarshalJSON implements json.Marshaler.
func (o Optional) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(o))
}

// When is a time in results, RFC 3339 in UTC; the zero time is none.
func When(t time.Time) Optional {
	if t.IsZero() {
		return ""
	}
	return Optional(t.UTC().Format(time.RFC3339))
}
