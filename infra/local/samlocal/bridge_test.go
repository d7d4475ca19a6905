package samlocal

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"signalbox.dev/infra/test/kit"
)

// A connection from outside of the network is closed, and the next one accepted.
func TestOnlyTheBridgesNetworkIsServed(t *testing.T) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{})
	kit.Must(t, err)
	l := within{listener, netip.MustParsePrefix("127.0.0.2/31")}
	defer func() { _ = l.Close() }()
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.DialContext(t.Context(), "tcp4", listener.Addr().String())
		kit.Must(t, err)
		return c
	}
	outside, inside := dial("127.0.0.1"), dial("127.0.0.3")
	served, err := l.Accept()
	kit.Must(t, err)
	if got := served.RemoteAddr().String(); got != inside.LocalAddr().String() {
		t.Fatalf("served %s, want %s", got, inside.LocalAddr())
	}
	if _, err := outside.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("outside of the network: %v, want the end", err)
	}
}
