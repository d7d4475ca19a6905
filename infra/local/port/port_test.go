package port_test

import (
	"net"
	"testing"

	"signalbox.dev/infra/local/port"
)

// A port that was found is given to nobody who asks for any, and a server can
// have it.
func TestFreePortsAreKept(t *testing.T) {
	const host = "127.0.0.1"
	all, err := port.Free(host, 3)
	if err != nil || all[0] == all[1] || all[1] == all[2] || all[0] == all[2] {
		t.Fatalf("found %v, %v", all, err)
	}
	found := all[0]
	for range 20_000 {
		other, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		if _, given, err := net.SplitHostPort(other.Addr().String()); err != nil || given == found {
			t.Errorf("port %s was given to somebody else, %v", found, err)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
	server, err := net.Listen("tcp", net.JoinHostPort(host, found))
	if err != nil {
		t.Fatalf("the server: %v", err)
	}
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 1000 {
		if other, err := port.Free(host, 1); err != nil || other[0] == found {
			t.Fatalf("port %v is taken, %v", other, err)
		}
	}
}

func TestThereMayBeNoPort(t *testing.T) {
	if found, err := port.Free("192.0.2.1", 1); err == nil { // nobody's (RFC 5737)
		t.Errorf("found %v", found)
	}
}
