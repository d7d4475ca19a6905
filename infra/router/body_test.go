package main

import (
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
)

// Long strings are left out, and still checked: for bodies with a damage at any place the
// model is read if the whole body is sound, and only then.
func TestLongStringsAreChecked(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a seed
	units := []string{"a", "é", "€", "\U0001f511", `\"`, `\\`, `\/`, `\n`, `\u00e9`, `\uD83D\uDD11`, `\u4f60`, " ", "{", "~"}
	damages := []string{"\"", "\\", `\x`, `\u12`, `\ud83d`, `\udd11`, `\ud83d\u0041`, `\ud83d\n\udd11`, `\ud83dx`, "\x00", "\n", "\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x94", "\xc0\xaf", "\xed\xa0\x80"}
	for round := range 500 {
		var text strings.Builder
		if unit := random.IntN(len(units) + 2); unit < len(units) { // often one unit alone
			for text.Len() < longest-20+random.IntN(40) || random.IntN(20) > 0 {
				text.WriteString(units[unit])
			}
		} else {
			for text.Len() < 2*longest {
				text.WriteString(units[random.IntN(len(units))])
			}
		}
		if random.IntN(2) > 0 {
			text.WriteString(damages[random.IntN(len(damages))])
			text.WriteString(units[random.IntN(len(units))])
		}
		body := `{"messages":["` + text.String() + `"],"model":"m"}`
		isSound := jsontext.Value(body).IsValid()
		cut := random.IntN(len(body)) // what comes before it is read at once, the rest byte by byte
		read, err := readContent(io.MultiReader(strings.NewReader(body[:cut]), iotest.OneByteReader(strings.NewReader(body[cut:]))))
		if isSound != (err == nil) || isSound && read.model != "m" {
			t.Fatalf("round %d: %q, %v, sound: %t, of …%q", round, read.model, err, isSound, body[max(0, len(body)-80):])
		}
	}
}

// A body costs little memory, whatever its strings and numbers are.
func TestALargeBodyCostsLittleMemory(t *testing.T) {
	for name, c := range map[string]struct {
		value   string
		isSound bool
	}{
		"a string":        {`"` + strings.Repeat("A", 1<<20) + `"`, true},
		"escapes":         {`"` + strings.Repeat(`\u4f60`, 175_000) + `"`, true},
		"a name":          {`{"` + strings.Repeat("A", 1<<20) + `":1}`, true},
		"a number":        {strings.Repeat("9", 1<<20), false},
		"a short number":  {strings.Repeat("9", longest), true},
		"white space":     {strings.Repeat(" ", 1<<20) + "1", true},
		"many values":     {"[" + strings.Repeat("1,", 1<<19) + "1]", true},
		"a deep value":    {strings.Repeat("[", 1<<20), false},
		"an endless text": {`"` + strings.Repeat("A", 1<<20), false},
	} {
		body := strings.NewReader(`{"x":` + c.value + `,"model":"m"}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		read, err := readContent(body)
		runtime.ReadMemStats(&after)
		if (err == nil) != c.isSound || c.isSound && read.model != "m" {
			t.Errorf("%s: %q, %v", name, read.model, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 512<<10 {
			t.Errorf("%s: %d bytes of memory", name, n)
		}
	}
}
