package ledger

import (
	"crypto/md5" //nolint:gosec // S3's ETag
	"fmt"
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/infra/torture/service"
)

// TestAuditsFindDamage: a ledger and storage that agree are in order, and each
// damage of storage, or false response, is reported.
func TestAuditsFindDamage(t *testing.T) {
	t.Parallel()
	status := func(code int) service.Answer { return service.Answer{Status: code} }
	for want, damage := range map[string]func(l *Ledger, o *Order, f *File, stored *content){
		"": func(*Ledger, *Order, *File, *content) {},
		"acknowledged and is lost": func(_ *Ledger, _ *Order, _ *File, stored *content) {
			stored.rows, stored.opened = nil, nil
		},
		"refused and is stored": func(_ *Ledger, o *Order, _ *File, _ *content) { o.first = nil },
		"forbidden and was accepted": func(_ *Ledger, o *Order, _ *File, _ *content) {
			o.Forbidden = true
			o.Answered(status(http.StatusCreated))
		},
		"is stored 2 times": func(_ *Ledger, _ *Order, _ *File, stored *content) {
			stored.rows, stored.opened = append(stored.rows, stored.rows[0]), append(stored.opened, stored.opened[0])
		},
		"never asked for":       func(l *Ledger, _ *Order, _ *File, _ *content) { delete(l.orders, "order") },
		"valid and was refused": func(_ *Ledger, o *Order, _ *File, _ *content) { o.Answered(status(http.StatusBadRequest)) },
		"two responses":         func(_ *Ledger, o *Order, _ *File, _ *content) { o.Answered(status(http.StatusCreated)) },
		"is stored otherwise":   func(_ *Ledger, _ *Order, _ *File, stored *content) { stored.rows[0].SortOrder = 9 },
		"share position": func(_ *Ledger, _ *Order, _ *File, stored *content) {
			stored.rows, stored.opened = append(stored.rows, row{Workspace: "w", Name: "other"}), append(stored.opened, "")
		},
		"does not open":             func(_ *Ledger, _ *Order, _ *File, stored *content) { stored.opened[0] = "another key" },
		"1 versions of it are left": func(_ *Ledger, _ *Order, f *File, _ *content) { f.Answered(status(http.StatusOK)) },
		"deleted twice": func(_ *Ledger, _ *Order, f *File, _ *content) {
			f.Answered(status(http.StatusOK))
			f.Answered(status(http.StatusOK))
		},
		"lost or changed": func(_ *Ledger, _ *Order, f *File, stored *content) { delete(stored.etags, f.Key()) },
	} {
		l := New("account")
		o, f := l.Order(Order{Name: "order", Workspace: "w"}), l.File("w", "file_a")
		o.Answered(service.Answer{Status: http.StatusCreated, Body: []byte(`{"data":{"id":"c","workspace_id":"w","sort_order":0}}`)})
		stored := content{
			rows: []row{{Workspace: "w", ID: "c", Name: "order"}}, opened: []string{o.Secret()}, versions: map[string]int{f.Key(): 1},
			etags: map[string]string{f.Key(): fmt.Sprintf("%x", md5.Sum([]byte(f.Content())))}, //nolint:gosec // S3's ETag
		}
		damage(l, o, f, &stored)
		found := strings.Join(l.compare(stored).Broken, "\n")
		if (want == "") != (found == "") || !strings.Contains(found, want) {
			t.Errorf("%q: found %q", want, found)
		}
	}
}
