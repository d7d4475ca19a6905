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
)

type Writer struct {
	To io.Writer
	// JSON is for scripts. Without it there are tables and sentences. Quiet leaves only ids.
	JSON, Quiet bool
	// Width is the number of columns of the terminal; 0 if there is none.
	Width int
	// Now is the time from which lists count ages.
	Now time.Time
	// Note gets a line if a list is empty, or columns are left out.
	Note func(format string, args ...any)
}

// Line is a line of a card.
type Line struct{ Title, Text string }

// One shows one value as a card, or encodes it for scripts. The card has a line for each
// field with the tag `title`, and then the lines of more.
func One(o Writer, row any, more ...Line) error {
	if o.JSON {
		return o.Encode(row)
	}
	if o.Quiet {
		_, err := fmt.Fprintln(o.To, idOf(row))
		return err
	}
	var lines []Line
	for field, value := range reflect.ValueOf(row).Fields() {
		if title, ok := field.Tag.Lookup("title"); ok {
			lines = append(lines, Line{title, cell(value)})
		}
	}
	_, err := io.WriteString(o.To, Aligned(func(w io.Writer) {
		for _, line := range append(lines, more...) {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", line.Title, Printable(line.Text))
		}
	}))
	return err
}

// idOf is the id or hash of a row, or its first value.
func idOf(row any) string {
	v := reflect.ValueOf(row)
	for _, name := range []string{"ID", "Hash"} {
		if id := v.FieldByName(name); id.IsValid() {
			return Printable(cell(id))
		}
	}
	return Printable(cell(v.Field(0)))
}

func cell(v reflect.Value) string {
	switch is := v.Kind(); {
	case is == reflect.Pointer && v.IsNil():
		return ""
	case is == reflect.Pointer:
		return cell(v.Elem())
	case is == reflect.Bool && v.Bool():
		return "yes"
	case is == reflect.Bool:
		return ""
	case is == reflect.Slice:
		cells := make([]string, v.Len())
		for i := range cells {
			cells[i] = cell(v.Index(i))
		}
		return strings.Join(cells, ", ")
	}
	return fmt.Sprint(v)
}

// Aligned puts the tab-separated text of write into columns. A write to memory never fails.
func Aligned(write func(io.Writer)) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	write(w)
	_ = w.Flush()
	return b.String()
}

// Say writes a sentence for people, and the value or its id for scripts.
func (o Writer) Say(value any, format string, args ...any) error {
	switch {
	case o.JSON:
		return o.Encode(value)
	case o.Quiet:
		_, err := fmt.Fprintln(o.To, idOf(value))
		return err
	}
	_, err := fmt.Fprintln(o.To, OneLine(fmt.Sprintf(format, args...)))
	return err
}

// Encode writes a value as JSON, in one line. It escapes every character that could move a
// terminal's cursor.
func (o Writer) Encode(value any) error {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	var safe []byte
	for _, r := range encoded.String() {
		if r == '\n' || unicode.IsPrint(r) {
			safe = utf8.AppendRune(safe, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			safe = fmt.Appendf(safe, `\u%04x`, unit)
		}
	}
	_, err := o.To.Write(safe)
	return err
}

// Printable quotes a text with unprintable characters, so that it cannot move the cursor or
// break the table. An empty text becomes -.
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

// OneLine returns a sentence for a terminal: it escapes every character that could
// move the cursor. An id in it may be the key of a row, which can be any text.
func OneLine(s string) string {
	var line strings.Builder
	for _, r := range strings.ReplaceAll(s, "\n", "; ") {
		if unicode.IsPrint(r) {
			line.WriteRune(r)
		} else {
			line.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return line.String()
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

// When is a time in results, RFC 3339 in UTC. It is null for the zero time, and for the time
// 0 of a damaged row.
func When(t time.Time) Optional {
	if t.Unix() <= 0 {
		return ""
	}
	return Optional(t.UTC().Format(time.RFC3339))
}
