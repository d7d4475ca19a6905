package samlocal

import (
	"net"
	"net/netip"
	"time"
)

var loopback = net.IPv4(127, 0, 0, 1)

// followBridge serves containers on Docker's bridge as soon as it exists: Docker's
// engine makes it at its first start.
func (p *proxy) followBridge() {
	for {
		if prefix, ok := bridgePrefix(); ok {
			address := net.TCPAddrFromAddrPort(netip.AddrPortFrom(prefix.Addr(), uint16(p.port))) //nolint:gosec // a port
			if l, err := net.ListenTCP("tcp", address); err == nil {
				_ = p.server.Serve(within{l, prefix}) // only Close ends it
				return
			}
		}
		select {
		case <-p.stop:
			return
		case <-time.After(time.Second):
		}
	}
}

// bridgePrefix is the bridge's address with its network. Containers of Docker Engine reach this
// machine through it.
func bridgePrefix() (netip.Prefix, bool) {
	i, err := net.InterfaceByName("docker0")
	if err != nil {
		return netip.Prefix{}, false
	}
	addresses, err := i.Addrs()
	if err != nil {
		return netip.Prefix{}, false
	}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			return prefix, true
		}
	}
	return netip.Prefix{}, false
}

// within is a listener that accepts connections from its own network only. Linux answers at
// the bridge's address on every interface, so another machine could reach it with a route.
type within struct {
	*net.TCPListener
	network netip.Prefix
}

func (w within) Accept() (net.Conn, error) {
	for {
		c, err := w.AcceptTCP()
		if err != nil {
			return nil, err
		}
		peer, err := netip.ParseAddrPort(c.RemoteAddr().String())
		if err == nil && w.network.Contains(peer.Addr().Unmap()) {
			return c, nil
		}
		_ = c.Close()
	}
}
