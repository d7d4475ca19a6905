package sim

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/functest"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// Delete is a request for the deletion of a file.
type Delete struct {
	Token     string // the tenant's management key by default
	Workspace ids.Workspace
	Unnamed   bool // the request names no workspace
	File      ids.File
	// PerMinute and Burst are the rate; the zero value practically means no limit.
	PerMinute, Burst int64
	// Never means that the request can never find the file.
	Never bool
	// The instance has served a request for another file before each of these pauses.
	Pauses []time.Duration
	// Time is how many calls each request has time for; 0 means any number.
	Time int
}

// fileJudge knows whose deletions are counted, and whether the operator changes files too.
type fileJudge struct {
	limited  map[string]bool // API keys whose rate is judged
	operator bool
}

// The file that requests are about.
const theFile ids.File = "file_1"

func (d Delete) withDefaults(w *World) Delete {
	d.Token, d.Workspace, d.File = cmp.Or(d.Token, w.Tenant.Management), cmp.Or(d.Workspace, w.Tenant.Workspace), cmp.Or(d.File, theFile)
	if d.PerMinute == 0 {
		d.PerMinute, d.Burst = 1_000_000, 100_000
	}
	return d
}

func (d Delete) event() functest.Event {
	e := functest.NewEvent(http.MethodDelete, "/api/v1/files/{file_id}").At("file_id", string(d.File)).
		As(d.Token).Limited(strconv.FormatInt(d.PerMinute, 10), strconv.FormatInt(d.Burst, 10))
	if !d.Unnamed {
		e = e.Asking("workspace_id", string(d.Workspace))
	}
	return e
}

// Put stores a version of a file of the tenant's workspace; "" stores a delete marker.
func (w *World) Put(f ids.File, content string) {
	at := kit.Bucket{Client: w.Direct.S3, Name: bucket}
	if content == "" {
		at.Hide(w.t, files.Key(w.Tenant.Workspace, f))
		return
	}
	at.Put(w.t, files.Key(w.Tenant.Workspace, f), content)
}

// Exists reports whether a file of the tenant's workspace can be read.
func (w *World) Exists(f ids.File) bool {
	return w.look(Delete{File: f}.withDefaults(w)).Visible > 0
}

// objects are the stored versions of a file.
type objects struct {
	Left     int // with delete markers
	Versions int // without them
	Visible  int // bytes that a plain GET returns; 0 if it finds nothing
}

func (w *World) look(d Delete) (o objects) {
	for i, v := range w.model.Versions(files.Key(d.Workspace, d.File)) {
		o.Left++
		if v.Marker {
			continue
		}
		o.Versions++
		if i == 0 {
			o.Visible = len(v.Body)
		}
	}
	return o
}

// Delete makes an actor that deletes a file.
func (w *World) Delete(name string, d Delete) {
	d = d.withDefaults(w)
	if len(w.checks) == 0 {
		w.watch(d)
	}
	w.actors = append(w.actors, w.deletion(name, d, 1+3*d.Time))
}

// Deleted makes a request before all others. The limiter has counted it.
func (w *World) Deleted(d Delete) {
	d = d.withDefaults(w)
	w.earlier("before", d.event(), func(x *exchange) { w.judgeDelete(x, d) })
}

func (w *World) deletion(name string, d Delete, repeats int) *actor {
	a := w.newActor(name)
	i := w.newInstance(a)
	for _, pause := range d.Pauses {
		other := d
		other.File = "file_none"
		before := w.newActor("before")
		w.request(before, i, other.event(), func(x *exchange) { w.judgeDelete(x, other) })
		w.actBefore(before)
		time.Sleep(pause)
	}
	d.Pauses, a.time = nil, d.Time
	x := w.request(a, i, d.event(), func(x *exchange) { w.judgeDelete(x, d) })
	work, read := a.work, a.then
	a.work = func(ctx context.Context) {
		x.before = w.look(d)
		work(ctx)
	}
	a.then = func() {
		read()
		x.after = w.look(d)
	}
	a.again = func() *actor {
		if d.Time > 0 && x.answer.Status == http.StatusInternalServerError && x.after.Left > max(0, x.before.Left-1) && strings.Contains(name, again) {
			w.problem("%s: it has made no progress: %d of %d versions and markers are left", name, x.after.Left, x.before.Left)
		}
		if repeats == 0 || d.Time > 0 && x.answer.Status == http.StatusNotFound {
			return nil
		}
		return w.deletion(strings.TrimSuffix(name, again)+again, d, repeats-1)
	}
	return a
}

// watch checks at each step that no older version of the file becomes visible. At the end
// it checks the other files and the limiter.
func (w *World) watch(d Delete) {
	first, others := w.look(d), w.siblings(d)
	if w.Versioning == "" && first.Left > 0 {
		w.showed(w.past(), sets(fileObject(d.Workspace, d.File), "stored", func(bool) bool { return true }))
	}
	newest := first.Visible
	w.checks = append(w.checks, func() {
		if now := w.look(d).Visible; now != 0 && now != newest && now != len(uploaded) {
			w.problem("an older version of the file can be read: %d bytes", now)
		}
	})
	w.finally = append(w.finally, func() {
		if left := w.siblings(d); left != others && !w.registry.purged {
			w.problem("%d versions of other files are left of %d", left, others)
		}
		for token := range w.files.limited {
			stored := w.arrival(token)
			w.showed(atTheEnd, shows(limitObject(token), "the stored arrival time is "+w.offset(stored), func(tat int64) bool { return tat == stored }))
		}
	})
}

// siblings counts the versions of the files with names that begin with this file's name.
func (w *World) siblings(d Delete) int {
	return kit.Bucket{Client: w.Direct.S3, Name: bucket}.Look(w.t, files.Key(d.Workspace, d.File)).Siblings
}

func fileObject(workspace ids.Workspace, f ids.File) string {
	return "file " + string(workspace) + string(f)
}

// offset is a time in Unix nanoseconds, from the beginning of the run.
func (w *World) offset(at int64) string { return time.Duration(at - w.began.UnixNano()).String() }

func limitObject(token string) string { return "the limit of key " + hashOf(token)[:12] }

func limitRow(token string) string { return "limit#delete-file#" + hashOf(token) }

// arrival is the arrival time that the limiter has stored for the key.
func (w *World) arrival(token string) int64 {
	stored, _ := awsmodel.Integer(w.model.Item(controlTable, limitRow(token), "")["tat"])
	return stored
}

// judgeDelete notes the facts that the response shows.
func (w *World) judgeDelete(x *exchange, d Delete) {
	w.judgeLimit(x, d)
	w.judgeReceipt(x)
	counted := slices.Contains([]int{http.StatusOK, http.StatusNotFound, http.StatusTooManyRequests}, x.answer.Status)
	for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if (x.answer.Header[name] != "") != counted {
			w.problem("%s: %d with %s %q", x.Name, x.answer.Status, name, x.answer.Header[name])
		}
	}
	if after := x.answer.Header["Retry-After"]; (after != "") != (x.answer.Status == http.StatusTooManyRequests) || strings.HasPrefix(after, "0") {
		w.problem("%s: %d with Retry-After %q", x.Name, x.answer.Status, after)
	}
	if audit := x.answer.Audit; x.answer.Status == http.StatusOK && (audit["file"] != string(d.File) || audit["workspace"] != string(d.Workspace)) {
		w.problem("%s: 200 with the audit line %v", x.Name, audit)
	}
	switch x.answer.Status {
	case http.StatusOK:
		w.showed(x.actor, seenOn(workspaceObject(d.Workspace)))
		if x.after.Left > 0 || x.answer.Body != fmt.Sprintf(`{"id":"%s","type":"file_deleted"}`, d.File) || d.Never {
			w.problem("%s: 200 %s, and %d versions and markers are left", x.Name, x.answer.Body, x.after.Left)
		}
		if w.Versioning == "" {
			w.showed(x.actor, on(fileObject(d.Workspace, d.File), "deleted", func(exists bool) (bool, bool) { return exists, false }))
			w.judgeLostDeletions(x, d)
		} else if x.before.Left == 0 && !w.files.operator {
			w.problem("%s: 200, and there was nothing", x.Name)
		}
	case http.StatusNotFound:
		w.judgeAbsent(x, d)
	case http.StatusInternalServerError:
		if w.Versioning == "" {
			w.showed(x.actor, perhaps(sets(fileObject(d.Workspace, d.File), "deleted", func(bool) bool { return false })))
			w.judgeLostDeletions(x, d)
		}
	}
}

// judgeLostDeletions notes that each attempt without an answer may have deleted the file.
// More than three show nothing more: the operator's upload has three attempts.
func (w *World) judgeLostDeletions(x *exchange, d Delete) {
	noted := 0
	for _, m := range x.met {
		if strings.HasPrefix(m.call, "DeleteObject ") && (noted < 3 || m.fault.is(appliedLate)) {
			noted++
			w.showed(m.during(x.actor), perhaps(sets(fileObject(d.Workspace, d.File), "deleted by a lost attempt", func(bool) bool { return false })))
		}
	}
}

// judgeReceipt compares the number of removed versions that a request reports with the
// stored ones, if no other request ran at the same time.
func (w *World) judgeReceipt(x *exchange) {
	removed, _ := x.answer.Audit["versions_removed"].(float64)
	if w.overlapped(x) || x.beganAt < 0 {
		return
	}
	whole := x.answer.Status == http.StatusOK && len(x.met) == 0 && w.Versioning != "Suspended" // if suspended, a marker replaces a version
	if int(removed) > x.before.Versions || whole && int(removed) < x.before.Versions {
		w.problem("%s: %v versions removed of %d", x.Name, removed, x.before.Versions)
	}
}

func (w *World) judgeAbsent(x *exchange, d Delete) {
	asked := x.beganAt < 0 // storage
	for name := range x.made {
		asked = asked || strings.Contains(name, "Object")
	}
	switch {
	case d.Never:
	case !asked:
		w.showed(x.actor, seenOff(workspaceObject(d.Workspace)))
	case x.answer.Line["answer_lost"] == true:
		if w.Versioning == "" {
			w.showed(x.actor, sets(fileObject(d.Workspace, d.File), "deleted, perhaps by itself", func(bool) bool { return false }))
			w.judgeLostDeletions(x, d) // before a file was written again
		}
		if x.after.Left > 0 {
			w.problem("%s: 404, and %d versions are left", x.Name, x.after.Left)
		}
	case w.Versioning == "":
		w.showed(x.actor, shows(fileObject(d.Workspace, d.File), "absent", func(exists bool) bool { return !exists }))
	case x.after.Left > 0 && !w.overlapped(x):
		w.problem("%s: 404, and %d versions and markers are left", x.Name, x.after.Left)
	case x.before.Left > 0 && !w.overlapped(x):
		w.problem("%s: 404 of a file that was there", x.Name)
	}
}

// overlapped reports whether something else changed files at the same time.
func (w *World) overlapped(x *exchange) bool {
	if w.files.operator {
		return true
	}
	for _, other := range w.exchanges {
		if other != x && x.overlaps(other.actor) {
			return true
		}
	}
	return false
}

// judgeLimit holds the limiter to GCRA (ITU-T I.371): the state is the theoretical
// arrival time, in Unix nanoseconds.
func (w *World) judgeLimit(x *exchange, d Delete) {
	w.files.limited[d.Token] = true
	interval := (time.Minute.Nanoseconds() + d.PerMinute - 1) / d.PerMinute
	tolerance, now := (d.Burst-1)*interval, x.began.UnixNano()
	seconds := func(ns int64) string {
		return strconv.FormatInt((ns+time.Second.Nanoseconds()-1)/time.Second.Nanoseconds(), 10)
	}
	burst, header := strconv.FormatInt(d.Burst, 10), x.answer.Header
	// shown reports whether the limiter's headers say this.
	shown := func(remaining, reset int64) bool {
		r, t := strconv.FormatInt(remaining, 10), seconds(reset)
		return header["RateLimit-Policy"] == `"delete-file";q=`+burst+";w="+seconds(d.Burst*interval) && header["RateLimit"] == `"delete-file";r=`+r+";t="+t &&
			header["X-RateLimit-Limit"] == burst && header["X-RateLimit-Remaining"] == r && header["X-RateLimit-Reset"] == t
	}
	pass := func(answered bool) event {
		return on(limitObject(d.Token), "passes at "+w.offset(now), func(tat int64) (bool, int64) {
			next := max(tat, now) + interval
			return tat <= now+tolerance && (!answered || shown(d.Burst-(next-now+interval-1)/interval, next-now)), next
		})
	}
	own := false
	for _, m := range x.met {
		if strings.Contains(m.call, "limit#") {
			w.showed(m.during(x.actor), perhaps(pass(false))) // by an attempt whose answer was lost
			own = own || m.fault.ownThrottle()
		}
	}
	// A throttled item is the caller's doing: one call, then 429.
	if own && (len(x.met) > 1 || x.answer.Status != http.StatusTooManyRequests) && x.knowsCaller() && !slices.ContainsFunc(x.met, func(m met) bool { return !m.fault.ownThrottle() }) {
		w.problem("%s: %d after %v", x.Name, x.answer.Status, x.met)
	}
	switch x.answer.Status {
	case http.StatusOK, http.StatusNotFound:
		w.showed(x.actor, pass(true))
	case http.StatusTooManyRequests:
		if !own {
			w.showed(x.actor, shows(limitObject(d.Token), "is refused at "+w.offset(now), func(tat int64) bool {
				return tat > now+tolerance && shown(0, tat-now) && header["Retry-After"] == seconds(max(tat-tolerance-now, time.Second.Nanoseconds()))
			}))
		}
	default:
		w.showed(x.actor, perhaps(pass(false)))
	}
}

const uploaded = "uploaded by the operator"

// Upload makes an actor that uploads a file if there is none.
func (w *World) Upload(name string, f ids.File) {
	w.files.operator = true
	do := act{name: name, refused: map[error][]event{files.ErrExists: nil}, run: func(ctx context.Context, c Clients) error {
		return c.Files.Upload(ctx, w.Tenant.Workspace, f, strings.NewReader(uploaded), "text/plain")
	}}
	if object := fileObject(w.Tenant.Workspace, f); w.Versioning == "" {
		up := on(object, "uploaded", func(exists bool) (bool, bool) { return !exists, true })
		do.shows = []event{up}
		do.attempted = []event{perhaps(up)} // if the file was deleted in between
		do.refused[files.ErrExists] = []event{shows(object, "there already", func(exists bool) bool { return exists })}
	}
	w.act(do)
}
