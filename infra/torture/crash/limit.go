package crash

import (
	"context"
	"net/http"
	"time"

	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/shared/ids"
)

// The limiter under which a run stands: narrow enough for hammer to
// meet it, wide enough for most clients not to.
const (
	ratePerMinute = 1200
	burst         = 20
)

// hammer asks for files that are not there as fast as it can. However often the
// limiter's store is killed, no more may pass than its rate gives out.
func (f *fixture) hammer(ctx context.Context) {
	nothing := &ledger.File{Workspace: f.account.Workspaces[0], ID: ids.NewFile()}
	passed, began := 0, time.Now()
	for ctx.Err() == nil {
		if a := f.remove(context.WithoutCancel(ctx), f.limited.Token, nothing); a.Status == http.StatusNotFound {
			passed++
		}
	}
	// Each instant is the function's, later than began and earlier than now.
	given := burst + time.Since(began).Minutes()*ratePerMinute
	if float64(passed) > given+1 {
		f.ledger.Breach("the limiter let %d through where it had %.1f to give", passed, given)
	}
}
