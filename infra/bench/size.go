package main

import (
	"compress/flate"
	"fmt"
	"io"
	"os"
)

// sizes compares the binaries, as they are and deflated as in a zip.
func sizes(w io.Writer, pairs []pair) error {
	_, _ = fmt.Fprint(w, "\nbinary\tfunction\tminimal\tratio\tgoal\n")
	for _, p := range pairs {
		ours, oursZipped, err := measure(p.function)
		if err != nil {
			return err
		}
		theirs, theirsZipped, err := measure(p.baseline)
		if err != nil {
			return err
		}
		mb := func(n int64) string { return fmt.Sprintf("%.2f MB", float64(n)/1e6) }
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\t%.2f\t1.1\n", p.operation, mb(ours), mb(theirs), float64(ours)/float64(theirs))
		_, _ = fmt.Fprintf(w, "  %s, zipped\t%s\t%s\t%.2f\t1.1\n", p.operation, mb(oursZipped), mb(theirsZipped), float64(oursZipped)/float64(theirsZipped))
	}
	return nil
}

// measure tells a file's size and its size when deflated.
func measure(path string) (plain, deflated int64, err error) {
	file, err := os.Open(path) //nolint:gosec // a binary of ours
	if err != nil {
		return 0, 0, fmt.Errorf("measuring a binary: %w", err)
	}
	defer func() { _ = file.Close() }()
	var counter count
	zip, err := flate.NewWriter(&counter, flate.DefaultCompression)
	if err != nil {
		return 0, 0, err
	}
	if plain, err = io.Copy(zip, file); err != nil {
		return 0, 0, fmt.Errorf("measuring %s: %w", path, err)
	}
	return plain, int64(counter), zip.Close()
}

// count counts what is written to it.
type count int64

func (c *count) Write(b []byte) (int, error) {
	*c += count(len(b))
	return len(b), nil
}
