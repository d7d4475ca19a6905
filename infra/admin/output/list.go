package output

import (
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A list has one line for each row. The tag `list` of a field overrides its `title` in lists.
// These words may follow the title, each after a comma:
//
//	short  ids and hashes are as short as they can be told apart, at least 8 characters
//	age    a time is shown as its age; a time in the future as "in 3d"
//	24     on a terminal that is too narrow, texts are cut, to 24 characters at least
//
// If that is still too wide, columns leave from the right, and a note names them.
type column[T any] struct {
	Column[T]

	how   []string
	least int // to so many characters its texts may be cut; 0 means never
}

// List encodes rows for scripts. For people it writes a table with the columns of these
// titles, the most important first, or notes that there are none.
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
	if len(rows) == 0 {
		o.Note("Nothing was found.")
		return nil
	}
	all := listed[T](titles)
	lines := make([][]string, len(rows)+1)
	for _, c := range all {
		lines[0] = append(lines[0], strings.ToUpper(c.Title))
		for i, text := range texts(o, c, rows) {
			lines[i+1] = append(lines[i+1], text)
		}
	}
	shown := len(all)
	for o.Width > 0 && shown > 1 && leastWidth(lines, all[:shown]) > o.Width {
		shown--
	}
	left := slices.Clone(lines[0][shown:])
	for i := range lines {
		lines[i] = lines[i][:shown]
	}
	for i, c := range all[:shown] {
		if excess := widthOf(lines) - o.Width; o.Width > 0 && excess > 0 && c.least > 0 {
			cut(lines[1:], i, max(c.least, widest(lines, i)-excess))
		}
	}
	table := Aligned(func(w io.Writer) {
		for _, line := range lines {
			_, _ = fmt.Fprintln(w, strings.Join(line, "\t"))
		}
	})
	if _, err := io.WriteString(o.To, table); err != nil {
		return err
	}
	if len(left) > 0 {
		o.Note("Not shown for want of room: %s (-o json has everything).", strings.Join(left, ", "))
	}
	return nil
}

// listed returns the columns of T with these titles, in this order.
func listed[T any](titles []string) (chosen []column[T]) {
	all := map[string]column[T]{}
	for field := range reflect.TypeFor[T]().Fields() {
		tag, ok := field.Tag.Lookup("list")
		if !ok {
			tag = field.Tag.Get("title")
		}
		words := strings.Split(tag, ",")
		title, how := words[0], words[1:]
		least, _ := strconv.Atoi(words[len(words)-1]) // 0 if it is no number
		all[title] = column[T]{Column[T]{title, func(row T) string { return cell(reflect.ValueOf(row).FieldByIndex(field.Index)) }}, how, least}
	}
	for _, title := range titles {
		chosen = append(chosen, all[title])
	}
	return chosen
}

// texts returns the texts of one column.
func texts[T any](o Writer, c column[T], rows []T) []string {
	all := make([]string, len(rows))
	for i, row := range rows {
		all[i] = c.Cell(row)
	}
	if slices.Contains(c.how, "short") {
		shorten(all)
	}
	for i, text := range all {
		if slices.Contains(c.how, "age") {
			text = o.age(text)
		}
		all[i] = Printable(text)
	}
	return all
}

var identifier = regexp.MustCompile(`[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// shortest is the length of the shortest id in lists. Every command takes one as short.
const shortest = 8

// shorten leaves as much of each id in the texts as tells it apart from the others.
func shorten(texts []string) {
	var all []string
	for _, text := range texts {
		all = append(all, identifier.FindAllString(text, -1)...)
	}
	slices.Sort(all)
	length := shortest
	for i := 1; i < len(all); i++ {
		if all[i] != all[i-1] {
			length = max(length, shared(all[i-1], all[i])+1)
		}
	}
	for i, text := range texts {
		texts[i] = identifier.ReplaceAllStringFunc(text, func(id string) string { return id[:min(length, len(id))] })
	}
}

// shared is the length of the beginning that both have.
func shared(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// age returns a time of When as an age, in its largest unit.
func (o Writer) age(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	age, form := o.Now.Sub(at), "%d%s"
	if age <= -time.Second {
		age, form = -age, "in %d%s"
	}
	for _, unit := range []struct {
		name  string
		is    time.Duration
		until time.Duration // the largest age in this unit
	}{{"s", time.Second, 2 * time.Minute}, {"m", time.Minute, 2 * time.Hour}, {"h", time.Hour, 48 * time.Hour}} {
		if age < unit.until {
			return fmt.Sprintf(form, max(0, age)/unit.is, unit.name)
		}
	}
	return fmt.Sprintf(form, age/(24*time.Hour), "d")
}

// cut shortens a column's texts to so many characters.
func cut(lines [][]string, column, longest int) {
	for _, line := range lines {
		if text := []rune(line[column]); len(text) > longest {
			line[column] = string(text[:longest-1]) + "…"
		}
	}
}

// widthOf is the width of a table with two blanks between its columns.
func widthOf(lines [][]string) int {
	width := -2
	for i := range lines[0] {
		width += widest(lines, i) + 2
	}
	return width
}

// leastWidth is the width of the table with these columns, with its texts cut.
func leastWidth[T any](lines [][]string, columns []column[T]) int {
	width := -2
	for i, c := range columns {
		needs := widest(lines, i)
		if c.least > 0 {
			needs = min(needs, max(c.least, utf8.RuneCountInString(lines[0][i])))
		}
		width += needs + 2
	}
	return width
}

// widest is the width of a column.
func widest(lines [][]string, column int) (width int) {
	for _, line := range lines {
		width = max(width, utf8.RuneCountInString(line[column]))
	}
	return width
}
