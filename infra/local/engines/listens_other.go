//go:build !linux

package engines

// listens reports whether the process is still there. An engine that cannot
// listen on its port ends.
func (p *process) listens() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}
