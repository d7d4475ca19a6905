// Package output shows results: tables and sentences for people, JSON for scripts.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
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
	// Limit bounds the rows of a list; 0 means no bound. Note gets a line if rows are left
	// out.
	Limit int
	Note  func(format string, args ...any)
}

// ForScripts reports whether a script reads the results.
func (o Writer) ForScripts() bool { return o.JSON || o.YAML }

// Column is one column of a table of T, or a line of a card.
type Column[T any] struct {
	Title string
	Cell  func(T) string
}

// The tag `title` makes a field a line of a card and a column of a list. In lists the tags
// `list`, `narrow` and `narrower` override it, the widest form first. They give another
// title, leave the field out ("-"), or shorten it to a number of characters ("id,8").
var (
	inCard  = []string{"title"}
	inLists = [][]string{{"title", "list"}, {"title", "list", "narrow"}, {"title", "list", "narrow", "narrower"}} // the widest first
)

// columns returns the columns of T by these tags. If titles are given, it returns only the
// columns that have one of these titles in the widest list, in this order.
func columns[T any](tags []string, titles ...string) (chosen []Column[T]) {
	all := map[string]Column[T]{}
	for field := range reflect.TypeFor[T]().Fields() {
		title, characters, _ := strings.Cut(lastTag(field, tags), ",")
		enough, err := strconv.Atoi(characters)
		column := Column[T]{title, func(row T) string {
			text := cell(reflect.ValueOf(row).FieldByIndex(field.Index))
			if err == nil {
				text = text[:min(enough, len(text))]
			}
			return text
		}}
		if len(titles) == 0 {
			chosen = append(chosen, column)
		}
		all[lastTag(field, inLists[0])] = column
	}
	for _, title := range titles {
		chosen = append(chosen, all[title])
	}
	return slices.DeleteFunc(chosen, func(c Column[T]) bool { return c.Title == "" || c.Title == "-" })
}

// lastTag returns the last of these tags that a field has.
func lastTag(field reflect.StructField, tags []string) (last string) {
	for _, tag := range tags {
		if value, ok := field.Tag.Lookup(tag); ok {
			last = value
		}
	}
	return last
}

// cell returns a value as text.
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

// List encodes rows for scripts. For people it writes the widest table that fits the
// terminal, or cards if none fits. If titles are given, it shows only these columns.
func List[T any](o Writer, rows []T, titles ...string) error {
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
	for _, tags := range inLists {
		if shown := table(rows, columns[T](tags, titles...)); o.fits(shown) || len(rows) == 0 {
			_, err := io.WriteString(o.To, shown)
			return err
		}
	}
	cards := make([]string, len(rows))
	for i, row := range rows {
		cards[i] = card(row, columns[T](inLists[0], titles...))
	}
	_, err := io.WriteString(o.To, strings.Join(cards, "\n"))
	return err
}

// table is a line of titles and a line for each row.
func table[T any](rows []T, columns []Column[T]) string {
	return Aligned(func(w io.Writer) {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = strings.ToUpper(c.Title)
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
		for _, row := range rows {
			for i, c := range columns {
				cells[i] = Printable(c.Cell(row))
			}
			_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	})
}

// card is a line for each column of a row.
func card[T any](row T, columns []Column[T]) string {
	return Aligned(func(w io.Writer) {
		for _, c := range columns {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", c.Title, Printable(c.Cell(row)))
		}
	})
}

// Aligned puts the tab-separated text of write into columns. A write to memory never fails.
func Aligned(write func(io.Writer)) string {
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

// One shows one value as a card, or encodes it for scripts. Only the card has the lines of
// more, at its end.
func One[T any](o Writer, row T, more ...Column[T]) error {
	if o.ForScripts() {
		return o.Encode(row)
	}
	_, err := io.WriteString(o.To, card(row, append(columns[T](inCard), more...)))
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

// escaped returns the same JSON. It escapes every character that could move a terminal's
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

// Count is a number with its noun, in singular or plural.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
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

// Optional is a text in results, null if it is empty.
type Optional string

// MarshalJSON implements json.Marshaler.
func (o Optional) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(o))
}

// When is a time in results, RFC 3339 in UTC. The zero time means that there is none.
func When(t time.Time) Optional {
	if t.IsZero() {
		return ""
	}
	return Optional(t.UTC().Format(time.RFC3339))
}
