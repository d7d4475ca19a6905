package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/shared/syncjobs"
)

// TestJob: each state shows its own fields, and says when to ask again.
func TestJob(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for status, want := range map[syncjobs.Status]struct {
		fields  string // a part of the body
		polling bool
	}{
		"queued":    {`"started_at":null,"finished_at":null`, true},
		"running":   {`"synced_groups":null,"deleted_groups":null,"error_message":null`, true},
		"succeeded": {`"synced_groups":12,"deleted_groups":0,"error_message":null`, false},
		"failed":    {`"synced_groups":null,"deleted_groups":null,"error_message":"` + jobError + `"`, false},
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			id := n.job(t, status)
			r := get(id).as(n.management).do(t).is(t, http.StatusOK)
			var body struct{ Data struct{ ID, Status string } }
			decode(t, r.body, &body)
			if body.Data.ID != id || body.Data.Status != string(status) || !strings.Contains(string(r.body), want.fields) {
				t.Errorf("got %s, want job %s %s with %s", r.body, id, status, want.fields)
			}
			if got := r.header.Get("Retry-After") != ""; got != want.polling {
				t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
			}
			again := get(strings.ToUpper(id)).as(n.management).do(t)
			indistinguishable(t, again, r)
			unchanged := get(id).as(n.management).with("If-None-Match", r.header.Get("Etag")).do(t).
				is(t, http.StatusNotModified)
			if got, want := unchanged.header.Get("Retry-After"), r.header.Get("Retry-After"); got != want {
				t.Errorf("Retry-After is %q on the 304, %q on the 200", got, want)
			}
		})
	}
}

func TestIfNoneMatch(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	id := n.job(t, "succeeded")
	tag := get(id).as(n.management).do(t).is(t, http.StatusOK).header.Get("Etag")
	for name, c := range map[string]struct {
		values []string
		match  bool
	}{
		"no header":        {nil, false},
		"the tag":          {[]string{tag}, true},
		"weak":             {[]string{"W/" + tag}, true},
		"any":              {[]string{"*"}, true},
		"in a list":        {[]string{`"a", ` + tag + `, "b"`}, true},
		"in a tight list":  {[]string{`"a",W/"b",` + tag}, true},
		"empty elements":   {[]string{`, "a" ,, ` + tag}, true},
		"comma in a tag":   {[]string{`"a,b", ` + tag}, true},
		"in two headers":   {[]string{`"a"`, tag}, true},
		"other":            {[]string{`"a"`}, false},
		"others":           {[]string{`"a", W/"b"`}, false},
		"empty":            {[]string{""}, false},
		"not quoted":       {[]string{strings.Trim(tag, `"`)}, false},
		"half quoted":      {[]string{strings.TrimSuffix(tag, `"`)}, false},
		"quoted star":      {[]string{`"*"`}, false},
		"lower-case w":     {[]string{"w/" + tag}, false},
		"text before":      {[]string{"nonsense " + tag}, false},
		"inside a tag":     {[]string{`"a` + strings.Trim(tag, `"`) + `"`}, false},
		"other, then star": {[]string{`"a", *`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := http.StatusOK
			if c.match {
				want = http.StatusNotModified
			}
			r := get(id).as(n.management).with("If-None-Match", c.values...).do(t).is(t, want)
			if got := r.header.Get("Etag"); got != tag {
				t.Errorf("ETag is %s, was %s", got, tag)
			}
		})
	}
}

// TestETagIsTheBodys: it changes with the body and with nothing else.
func TestETagIsTheBodys(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	id := n.job(t, "queued")
	queued := get(id).as(n.management).do(t).is(t, http.StatusOK)
	other := get(id).as(n.key(t, managementKey())).do(t).is(t, http.StatusOK)
	indistinguishable(t, other, queued)
	n.startJob(t, id)
	running := get(id).as(n.management).with("If-None-Match", queued.header.Get("Etag")).do(t).is(t, http.StatusOK)
	if running.header.Get("Etag") == queued.header.Get("Etag") {
		t.Error("the body changed and the ETag did not")
	}
}

// TestConditionsRevealNothing: a condition is judged after the caller.
func TestConditionsRevealNothing(t *testing.T) {
	t.Parallel()
	n, other := newTenant(t), newTenant(t)
	id := n.job(t, "succeeded")
	get(id).as(other.management).with("If-None-Match", "*").do(t).is(t, http.StatusNotFound)
	get(id).with("If-None-Match", "*").do(t).is(t, http.StatusUnauthorized)
}
