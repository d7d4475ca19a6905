package syncjobs

import "time"

// At gives the writer a clock.
func (w *Writer) At(now func() time.Time) *Writer {
	w.now = now
	return w
}
