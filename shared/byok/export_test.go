package byok

import "time"

// At makes the store use a clock.
func (s *Store) At(now func() time.Time) *Store {
	s.now = now
	return s
}
