package byok

import (
	"context"
	"time"
)

// Hurried makes the manager not wait for readers.
func (m *Manager) Hurried() *Manager {
	m.pause = func(context.Context, time.Duration) error { return nil }
	return m
}

// At makes the store use a clock.
func (s *Store) At(now func() time.Time) *Store {
	s.now = now
	return s
}
