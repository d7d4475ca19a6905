package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/admin/arguments"
)

func TestAnEndIsGivenInDaysToo(t *testing.T) {
	for given, want := range map[string]time.Duration{
		"90d": 90 * 24 * time.Hour, "1d": 24 * time.Hour, "36500d": arguments.MaxDays * 24 * time.Hour, "36h": 36 * time.Hour, "1h30m": 90 * time.Minute,
		"0d": 0, "0s": 0, "-1d": 0, "-9223372036854775807d": 0, "-2147483648d": 0, "-1h": 0, "36501d": 0, "2147483647d": 0, "99999999999d": 0, "876001h": 0,
		"90": 0, "d": 0, "": 0, "1.5d": 0, "1d12h": 0, "ten days": 0,
	} {
		got, err := arguments.ParseLifetime(given)
		if time.Duration(got) != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %s, %v", given, time.Duration(got), err)
		}
	}
	now := time.Now()
	if end, err := (keyCreate{ExpiresIn: arguments.Lifetime(time.Hour)}).end(now); err != nil || !end.Equal(now.Add(time.Hour)) {
		t.Errorf("from %s on an hour ends at %s, %v", now, end, err)
	}
}

// Callers need whole hashes for allow-lists; only a table that does not fit
// otherwise has short ones.
func TestKeysAreListedByTheirWholeHash(t *testing.T) {
	d := newFixture(t)
	var made createdKeyView
	d.json(&made, "key", "create", "ci", "--workspace", string(d.workspace))
	var listed []keyView
	d.json(&listed, "key", "list")
	if len(listed) != 1 || listed[0].Hash != made.Hash {
		t.Errorf("as JSON: %+v", listed)
	}
	for width, c := range map[int]struct {
		hash  string
		lines int
	}{0: {string(made.Hash), 2}, 200: {string(made.Hash), 2}, 120: {made.Hash.Short(), 2}, 80: {string(made.Hash), 7}, 20: {string(made.Hash), 7}} {
		d.change = func(a *app) { a.width = width }
		shown := d.must("key", "list") + "\n"
		if !slices.Contains(strings.Fields(shown), c.hash) || strings.Count(shown, "\n") != c.lines {
			t.Errorf("%d columns:\n%s", width, shown)
		}
	}
}
