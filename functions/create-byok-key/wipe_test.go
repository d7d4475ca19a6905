package main

import (
	"bytes"
	"net/http"
	"testing"
)

func TestTheProviderKeyIsGoneAfterTheAnswer(t *testing.T) {
	m := newMemory()
	if got := send(t, m.function(), bodies()[0]); got.StatusCode != http.StatusCreated {
		t.Fatalf("status %d, %s", got.StatusCode, got.Body)
	}
	if key := m.given.Key.Reveal(); len(key) == 0 || len(bytes.Trim(key, "\x00")) > 0 {
		t.Errorf("%d bytes of the key are left", len(bytes.Trim(key, "\x00")))
	}
}
