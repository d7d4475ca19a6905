// Package secret holds bytes that must not be shown: provider keys, bearer tokens,
// request bodies. A Bytes prints as [redacted] under every verb, in JSON and in slog,
// wherever it is embedded; only Reveal yields the bytes.
//
// The bytes live in a closure, not in a field. fmt does not call methods on unexported
// fields, and printers built on reflection call none at all. They could reach a slice
// or a pointer to a slice. They cannot reach a captured variable.
package secret

import (
	"fmt"
	"log/slog"
)

// Redacted is printed in place of a secret.
const Redacted = "[redacted]"

// Bytes is a secret. The zero value holds nothing.
type Bytes struct {
	reveal func() []byte
}

// New takes over b: the caller must not use it again, because Wipe clears it.
func New(b []byte) Bytes {
	return Bytes{reveal: func() []byte { return b }}
}

// Reveal yields the bytes themselves, not a copy: they are gone after Wipe.
func (s Bytes) Reveal() []byte {
	if s.reveal == nil {
		return nil
	}
	return s.reveal()
}

// Wipe overwrites the bytes with zeros, for every copy of s. It cannot reach
// copies that the Go runtime or another library has made; it only shortens the time in
// which a dump of memory shows the secret.
func (s Bytes) Wipe() {
	clear(s.Reveal())
}

// Format implements fmt.Formatter: every verb and flag shows Redacted.
func (s Bytes) Format(f fmt.State, _ rune) {
	_, _ = f.Write([]byte(Redacted)) // fmt reports a failing writer itself
}

// String implements fmt.Stringer, for callers that do not go through fmt.
func (s Bytes) String() string { return Redacted }

// MarshalText implements encoding.TextMarshaler; encoders of JSON, XML and
// flags honour it.
func (s Bytes) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// LogValue implements slog.LogValuer.
func (s Bytes) LogValue() slog.Value { return slog.StringValue(Redacted) }
