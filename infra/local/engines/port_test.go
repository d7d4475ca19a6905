package engines_test

import (
	"net"
	"testing"

	"signalbox.dev/infra/local/engines"
)

// A port that was found is given to nobody else, and a server can have it.
func TestFreePortIsReserved(t *testing.T) {
	found, err := engines.FreePort("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for range 20_000 {
		other, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(other.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if port == found {
			t.Errorf("port %s was given to somebody else", found)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
	server, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", found))
	if err != nil {
		t.Fatalf("the server: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}
