package testkit

import (
	"bytes"
	"crypto/rand"
	"fmt"
)

// Masked is a random secret that a test can write and search the heap for without
// having a copy of it: its letters with their bits inverted.
type Masked []byte

// NewMasked makes a secret of that many letters.
func NewMasked(length int) Masked {
	m := make(Masked, length)
	_, _ = rand.Read(m) // it never fails
	for i, b := range m {
		m[i] = ^('a' + b%26)
	}
	return m
}

// Append writes the secret.
func (m Masked) Append(to []byte) []byte {
	for _, b := range m {
		to = append(to, ^b)
	}
	return to
}

// AppendEscaped writes the secret in JSON's escapes.
func (m Masked) AppendEscaped(to []byte) []byte {
	for _, b := range m {
		to = fmt.Appendf(to, `\u%04x`, ^b)
	}
	return to
}

// Copies counts the copies of the secret, plain and escaped, in the dump of a heap.
// Of a long one it looks for a few fragments, and counts the most frequent.
func (m Masked) Copies(dump []byte) (found int) {
	const fragment = 16 // letters that make a copy
	plain, escaped := m.Append(make([]byte, 0, len(m))), m.AppendEscaped(make([]byte, 0, 6*len(m)))
	defer clear(plain) // they are on the heap themselves
	defer clear(escaped)
	for at := 0; at+fragment <= len(m); at += max(fragment, len(m)/4) {
		found = max(found, bytes.Count(dump, plain[at:at+fragment])+bytes.Count(dump, escaped[6*at:6*(at+fragment)]))
	}
	return found
}
