package kms

import "time"

// At gives the service a clock.
func (s *Service) At(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}
