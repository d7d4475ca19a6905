package samlocal

import (
	"net"
	"net/netip"
)

// Within is the listener for containers of a network.
func Within(l *net.TCPListener, network netip.Prefix) net.Listener { return within{l, network} }
