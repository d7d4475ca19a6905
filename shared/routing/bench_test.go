package routing_test

import (
	"testing"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/routing"
)

// BenchmarkReader counts the calls to AWS of 1,000 requests that open one credential, with
// opened keys kept and without. `make bench` runs it.
func BenchmarkReader(b *testing.B) {
	for _, c := range []struct {
		name string
		keys int
	}{{"kept", 0}, {"not-kept", -1}} {
		b.Run(c.name, func(b *testing.B) {
			f := newFixture(b, func(config *routing.Config) { config.Keys = c.keys })
			f.store(b, byok.Settings{})
			for b.Loop() {
				f.mustOpen(b)
			}
			decrypts := f.calls("Decrypt")
			perThousand := func(n int) float64 { return float64(n) * 1000 / float64(b.N) }
			b.ReportMetric(perThousand(decrypts), "decrypts/1000")
			// Query and GetItem are side by side.
			b.ReportMetric(perThousand(f.calls("Query")+decrypts), "round-trips/1000")
		})
	}
}
