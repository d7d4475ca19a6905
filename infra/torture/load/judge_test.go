package load

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at is a reading, so many seconds after the start.
func at(second int, roles map[string]Usage) reading {
	return reading{at: time.Unix(int64(second), 0), roles: roles}
}

func TestMemoryComparesTheSecondFifthWithTheLast(t *testing.T) {
	var w watcher
	for second := range 60 { // sustained from 5 to 55: fifths of 10 s
		bytes := uint64(100)
		switch {
		case second < 15:
			bytes = 1 // caches fill
		case second >= 55:
			bytes = 900 // overload
		case second >= 45:
			bytes = 300
		}
		if second == 20 || second == 50 {
			bytes *= 2 // for a moment
		}
		roles := map[string]Usage{"engine": {bytes * mebibyte, 1}}
		if second > 30 {
			roles["function"] = Usage{40 * mebibyte, 2}
		}
		w.readings = append(w.readings, at(second, roles))
	}
	got := w.judge(time.Unix(5, 0), time.Unix(55, 0))
	want := []Memory{
		{Role: "engine", Early: Usage{100 * mebibyte, 1}, Late: Usage{300 * mebibyte, 1}, Peak: Usage{900 * mebibyte, 1}},
		{Role: "function", Late: Usage{40 * mebibyte, 2}, Peak: Usage{40 * mebibyte, 2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	if !got[0].Grows() || got[0].Ratio() != 3 {
		t.Errorf("three times as much is told as ratio %v, grows %v", got[0].Ratio(), got[0].Grows())
	}
}

func TestMemoryGrowsByAQuarterAnd32MB(t *testing.T) {
	for _, c := range []struct {
		name        string
		early, late Usage
		grows       bool
	}{
		{"flat", Usage{100 * mebibyte, 1}, Usage{100 * mebibyte, 1}, false},
		{"shrinks", Usage{300 * mebibyte, 1}, Usage{100 * mebibyte, 1}, false},
		{"much, of little", Usage{20 * mebibyte, 1}, Usage{50 * mebibyte, 1}, false},
		{"little, of much", Usage{400 * mebibyte, 1}, Usage{480 * mebibyte, 1}, false},
		{"much", Usage{100 * mebibyte, 1}, Usage{140 * mebibyte, 1}, true},
		{"more instances", Usage{60 * mebibyte, 3}, Usage{200 * mebibyte, 10}, false},
		{"each instance", Usage{60 * mebibyte, 3}, Usage{180 * mebibyte, 3}, true},
		{"not seen early", Usage{}, Usage{200 * mebibyte, 1}, false},
		{"never seen", Usage{}, Usage{}, false},
	} {
		if grows := (Memory{Early: c.early, Late: c.late}).Grows(); grows != c.grows {
			t.Errorf("%s: grows %v", c.name, grows)
		}
	}
}

// answers are ten a second, of a phase that begins after overload.
func answers(seconds int, took func(second int) (time.Duration, bool)) *Phase {
	p := &Phase{Duration: time.Duration(seconds) * time.Second}
	for i := range 10 * seconds {
		t, success := took(i / 10)
		p.samples = append(p.samples, sample{due: time.Duration(i) * 100 * ms, took: t, success: success})
	}
	return p
}

func TestRecovery(t *testing.T) {
	for name, c := range map[string]struct {
		took   func(second int) (time.Duration, bool)
		after  time.Duration
		broken string
	}{
		"at once":        {func(int) (time.Duration, bool) { return 10 * ms, true }, 0, ""},
		"after failures": {func(s int) (time.Duration, bool) { return 10 * ms, s >= 3 }, 3 * time.Second, ""},
		"after slowness": {func(s int) (time.Duration, bool) { return max(1, time.Duration(4-s)) * 20 * ms, true }, 3 * time.Second, ""},
		"never":          {func(s int) (time.Duration, bool) { return 10 * ms, s%4 > 0 }, 0, "not recovered"},
		"relapse":        {func(s int) (time.Duration, bool) { return 10 * ms, s != 8 }, 0, "10 requests failed"},
	} {
		r := answers(12, c.took).recovered(20 * ms)
		if c.broken == "" && (!r.Recovered || r.After != c.after || len(r.broken()) > 0) {
			t.Errorf("%s: %+v, want it after %v", name, r, c.after)
		}
		if c.broken != "" && !strings.Contains(strings.Join(r.broken(), "\n"), c.broken) {
			t.Errorf("%s: %+v, want %q", name, r, c.broken)
		}
	}
	short := answers(4, func(int) (time.Duration, bool) { return 0, false }).recovered(20 * ms)
	if short.Judged || len(short.broken()) > 0 {
		t.Errorf("too short a phase was judged: %+v", short)
	}
}
