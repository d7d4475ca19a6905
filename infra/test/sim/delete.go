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

const theFile ids.File = "file_1"

func (d Delete) withDefaults(w *World) Delete {
	d.Token, d.Workspace, d.File = cmp.Or(d.Token, w.Tenant.Management), cmp.Or(d.Workspace, w.Tenant.Workspace), cmp.Or(d.File, theFile)
	if d.PerMinute == 0 {
		d.PerMinute, d.Burst = 1_000_000, 100_000
	}
	return d
}

// Delete makes an actor that deletes a file.
func (w *World) Delete(name string, d Delete) {
	d = d.withDefaults(w)
	if len(w.eachStep) == 0 {
		w.watchFile(d)
	}
	w.actors = append(w.actors, w.deletion(name, d, 1+3*d.Time))
}

// Deleted makes a request before all others. The limiter has counted it.
func (w *World) Deleted(d Delete) { w.earlier("before", d.withDefaults(w)) }

func (d Delete) event() functest.Event {
	e := functest.NewEvent(http.MethodDelete, "/api/v1/files/{file_id}").At("file_id", string(d.File)).
		As(d.Token).Limited(strconv.FormatInt(d.PerMinute, 10), strconv.FormatInt(d.Burst, 10))
	if !d.Unnamed {
		e = e.Asking("workspace_id", string(d.Workspace))
	}
	return e
}

// deletion is the work of a client that deletes a file. It looks at the stored file right
// before and after.
type deletion struct {
	*exchange
	request Delete
	repeats int // how many more
}

func (w *World) deletion(name string, d Delete, repeats int) *actor {
	a := w.newActor(name)
	i := w.newInstance(a)
	for _, pause := range d.Pauses {
		other := d
		other.File = "file_none"
		before := w.newActor("before")
		w.newExchange(before, i, other)
		w.actBefore(before)
		time.Sleep(pause)
	}
	d.Pauses, a.most = nil, d.Time
	a.work = &deletion{w.newExchange(a, i, d), d, repeats}
	return a
}

func (x *deletion) do(ctx context.Context) {
	x.before = x.world.look(x.request)
	x.exchange.do(ctx)
}

func (x *deletion) show() {
	x.exchange.show()
	x.after = x.world.look(x.request)
}

// again repeats a deletion that has little time until nothing is left.
func (x *deletion) again() *actor {
	short := x.request.Time > 0
	if short && x.answer.Status == http.StatusInternalServerError && x.after.Left > max(0, x.before.Left-1) && strings.Contains(x.Name, again) {
		x.world.problem("%s: it has made no progress: %d of %d versions and markers are left", x.Name, x.after.Left, x.before.Left)
	}
	if x.repeats == 0 || short && x.answer.Status == http.StatusNotFound {
		return nil
	}
	return x.world.deletion(strings.TrimSuffix(x.Name, again)+again, x.request, x.repeats-1)
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

// siblings counts the versions of the files with names that begin with this file's name.
func (w *World) siblings(d Delete) int {
	return kit.Bucket{Client: w.Direct.S3, Name: bucket}.Look(w.t, files.Key(d.Workspace, d.File)).Siblings
}

const uploaded = "uploaded by the operator"

// watchFile checks at each step that no older version of the file becomes visible, and at the
// end that the other files are there.
func (w *World) watchFile(d Delete) {
	first, others := w.look(d), w.siblings(d)
	if w.Versioning == "" && first.Left > 0 {
		w.showed(w.past(), sets(fileObject(d.Workspace, d.File), "stored", true))
	}
	w.eachStep = append(w.eachStep, func() {
		if now := w.look(d).Visible; now != 0 && now != first.Visible && now != len(uploaded) {
			w.problem("an older version of the file can be read: %d bytes", now)
		}
	})
	w.finally = append(w.finally, w.judgeArrivals, func() {
		if left := w.siblings(d); left != others && !w.registry.purged {
			w.problem("%d versions of other files are left of %d", left, others)
		}
	})
}

func fileObject(workspace ids.Workspace, f ids.File) string {
	return "file " + string(workspace) + string(f)
}

func (d Delete) judge(w *World, x *exchange) {
	file, status := fileObject(d.Workspace, d.File), x.answer.Status
	w.judgeLimit(x, d)
	w.judgeReceipt(x)
	if audit := x.answer.Audit; status == http.StatusOK && (audit["file"] != string(d.File) || audit["workspace"] != string(d.Workspace)) {
		w.problem("%s: 200 with the audit line %v", x.Name, audit)
	}
	switch status {
	case http.StatusOK:
		w.showed(x.actor, seenOn(workspaceObject(d.Workspace)))
		if x.after.Left > 0 || x.answer.Body != fmt.Sprintf(`{"id":"%s","type":"file_deleted"}`, d.File) || d.Never {
			w.problem("%s: 200 %s, and %d versions and markers are left", x.Name, x.answer.Body, x.after.Left)
		}
		if w.Versioning == "" {
			w.showed(x.actor, on(file, "deleted", func(exists bool) (bool, bool) { return exists, false }))
			w.judgeLostDeletions(x, file)
		} else if x.before.Left == 0 && !w.filesAct() {
			w.problem("%s: 200, and there was nothing", x.Name)
		}
	case http.StatusNotFound:
		if !d.Never {
			d.judgeAbsent(w, x)
		}
	case http.StatusInternalServerError:
		if w.Versioning == "" {
			w.showed(x.actor, perhaps(sets(file, "deleted", false)))
			w.judgeLostDeletions(x, file)
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

// judgeLostDeletions notes that each attempt without an answer may have deleted the file.
// More than three show nothing more: the operator's upload has three attempts.
func (w *World) judgeLostDeletions(x *exchange, file string) {
	noted := 0
	for _, m := range x.met {
		if strings.HasPrefix(m.call, "DeleteObject ") && (noted < 3 || m.fault.is(appliedLate)) {
			noted++
			w.showed(m.during(x.actor), perhaps(sets(file, "deleted by a lost attempt", false)))
		}
	}
}

// judgeAbsent judges a 404 of a file that may exist.
func (d Delete) judgeAbsent(w *World, x *exchange) {
	file, asked := fileObject(d.Workspace, d.File), x.beganAt < 0 // storage
	for name := range x.made {
		asked = asked || strings.Contains(name, "Object")
	}
	switch {
	case !asked:
		w.showed(x.actor, seenOff(workspaceObject(d.Workspace)))
	case x.answer.Line["answer_lost"] == true:
		if w.Versioning == "" {
			w.showed(x.actor, sets(file, "deleted, perhaps by itself", false))
			w.judgeLostDeletions(x, file) // before a file was written again
		}
		if x.after.Left > 0 {
			w.problem("%s: 404, and %d versions are left", x.Name, x.after.Left)
		}
	case w.Versioning == "":
		w.showed(x.actor, shows(file, "absent", func(exists bool) bool { return !exists }))
	case w.overlapped(x):
	case x.after.Left > 0:
		w.problem("%s: 404, and %d versions and markers are left", x.Name, x.after.Left)
	case x.before.Left > 0:
		w.problem("%s: 404 of a file that was there", x.Name)
	}
}

// overlapped reports whether something else changed files at the same time.
func (w *World) overlapped(x *exchange) bool {
	return w.filesAct() || slices.ContainsFunc(w.exchanges, func(other *exchange) bool { return other != x && x.overlaps(other.actor) })
}

// filesAct reports whether an act of the operator changes files too.
func (w *World) filesAct() bool {
	return slices.ContainsFunc(w.performances, func(p *performance) bool { return p.act.files })
}

// Upload makes an actor that uploads a file if there is none.
func (w *World) Upload(name string, f ids.File) {
	do := act{name: name, files: true, refused: without([]error{files.ErrExists}), run: func(ctx context.Context, c Clients) error {
		return c.Files.Upload(ctx, w.Tenant.Workspace, f, strings.NewReader(uploaded), "text/plain")
	}}
	if object := fileObject(w.Tenant.Workspace, f); w.Versioning == "" {
		up := on(object, "uploaded", func(exists bool) (bool, bool) { return !exists, true })
		do.shows = []fact{up}
		do.attempted = []fact{perhaps(up)} // if the file was deleted in between
		do.refused[files.ErrExists] = []fact{shows(object, "there already", func(exists bool) bool { return exists })}
	}
	w.acts(do)
}
