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
type column struct {
	texts []string // its title in capitals, and a text for each row
	least int      // to so many characters its texts may be cut; 0 means never
}

// List encodes rows for scripts. For people it writes a table with the columns of these
// titles, the most important first, or notes that there are none.
func List[T any](o Writer, rows []T, titles ...string) error {
	if o.JSON {
		if rows == nil {
			rows = []T{}
		}
		return o.Encode(rows)
	}
	if len(rows) == 0 {
		o.Note("Nothing was found.")
		return nil
	}
	if o.Quiet {
		for _, row := range rows {
			if _, err := fmt.Fprintln(o.To, idOf(row)); err != nil {
				return err
			}
		}
		return nil
	}
	var all []column
	for _, title := range titles {
		all = append(all, columnOf(o, rows, title))
	}
	shown := o.fit(all)
	table := Aligned(func(w io.Writer) {
		for i := range len(rows) + 1 {
			_, _ = fmt.Fprintln(w, strings.Join(across(shown, i), "\t"))
		}
	})
	if _, err := io.WriteString(o.To, table); err != nil {
		return err
	}
	if left := across(all[len(shown):], 0); len(left) > 0 {
		o.Note("Not shown for want of room: %s (--json has everything).", strings.Join(left, ", "))
	}
	return nil
}

func columnOf[T any](o Writer, rows []T, title string) (c column) {
	for field := range reflect.TypeFor[T]().Fields() {
		tag, ok := field.Tag.Lookup("list")
		if !ok {
			tag = field.Tag.Get("title")
		}
		words := strings.Split(tag, ",")
		if words[0] != title {
			continue
		}
		texts := make([]string, len(rows))
		for i, row := range rows {
			texts[i] = cell(reflect.ValueOf(row).FieldByIndex(field.Index))
		}
		if slices.Contains(words, "short") {
			shorten(texts)
		}
		for i, text := range texts {
			if slices.Contains(words, "age") {
				text = o.age(text)
			}
			texts[i] = Printable(text)
		}
		c.texts = slices.Insert(texts, 0, strings.ToUpper(title))
		c.least, _ = strconv.Atoi(words[len(words)-1]) // 0 if it is no number
	}
	return c
}

// fit returns the columns for which the terminal has room, and cuts their texts.
func (o Writer) fit(columns []column) []column {
	if o.Width == 0 {
		return columns
	}
	for len(columns) > 1 && width(columns, column.leastWidth) > o.Width {
		columns = columns[:len(columns)-1]
	}
	for _, c := range columns {
		if excess := width(columns, column.width) - o.Width; excess > 0 && c.least > 0 {
			c.cut(max(c.least, c.width()-excess))
		}
	}
	return columns
}

func width(columns []column, of func(column) int) int {
	width := -2
	for _, c := range columns {
		width += of(c) + 2
	}
	return width
}

func (c column) width() (width int) {
	for _, text := range c.texts {
		width = max(width, utf8.RuneCountInString(text))
	}
	return width
}

// leastWidth is the width of the column with its texts cut.
func (c column) leastWidth() int {
	if c.least == 0 {
		return c.width()
	}
	return min(c.width(), max(c.least, utf8.RuneCountInString(c.texts[0])))
}

func (c column) cut(longest int) {
	for i, text := range c.texts[1:] {
		if letters := []rune(text); len(letters) > longest {
			c.texts[i+1] = string(letters[:longest-1]) + "…"
		}
	}
}

// across returns a line of the table; line 0 has the titles.
func across(columns []column, i int) (texts []string) {
	for _, c := range columns {
		texts = append(texts, c.texts[i])
	}
	return texts
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
