package load

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Table writes the result for people to read, but what was broken.
func (r Result) Table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	r.requests(w)
	r.memory(w)
	r.end(w)
	return w.Flush()
}

// requests writes a line for each operation of each phase. The writer under it
// keeps an error until it is flushed.
func (r Result) requests(w io.Writer) {
	for _, p := range r.Phases {
		_, _ = fmt.Fprintln(w, p)
		_, _ = fmt.Fprintln(w, "  request\tsent\tnot sent\tanswers\tp50\tp90\tp99\tp99.9\tmax")
		for i, o := range p.operations {
			if o == nil {
				continue
			}
			_, _ = fmt.Fprintf(w, "  %v\t%d\t%d\t%s\t%v\t%v\t%v\t%v\t%v\n", operation(i), o.Sent, o.NotSent, o.Answers(),
				rounded(o.Quantile(50)), rounded(o.Quantile(90)), rounded(o.Quantile(99)), rounded(o.Quantile(99.9)), rounded(o.Max()))
		}
		_, _ = fmt.Fprintln(w)
	}
}

func (r Result) memory(w io.Writer) {
	_, _ = fmt.Fprintln(w, "memory of a process, MB\tprocesses\tearly\tlate\tratio\tall at most")
	for _, m := range r.Memory {
		_, _ = fmt.Fprintf(w, "  %s\t%d\t%.1f\t%.1f\t%.2f\t%.1f\n", m.Role, m.Peak.Processes,
			m.Early.each()/mebibyte, m.Late.each()/mebibyte, m.Ratio(), float64(m.Peak.Bytes)/mebibyte)
	}
	_, _ = fmt.Fprintln(w)
}

func (r Result) end(w io.Writer) {
	_, _ = fmt.Fprintf(w, "recovery after overload: %v\n", r.Recovery)
	a := r.Audit
	_, _ = fmt.Fprintf(w, "credentials and files: %d acknowledged, %d refused or left alone, %d uncertain, %d seals opened\n",
		a.Acknowledged, a.Refused, a.Uncertain, a.Opened)
}

// String says how long it took.
func (r Recovery) String() string {
	switch {
	case !r.Judged:
		return "too short to tell"
	case !r.Recovered:
		return "none"
	default:
		return fmt.Sprintf("%v until all requests succeeded again, 99 of 100 within %v", r.After, rounded(r.Limit))
	}
}

// rounded keeps three digits or so.
func rounded(d time.Duration) time.Duration {
	unit := time.Microsecond
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}
