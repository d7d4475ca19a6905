package port_test

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"testing"

	"signalbox.dev/infra/local/port"
)

// Free returns different ports that nobody listens on and that the system gives to
// no connection by itself.
func TestFree(t *testing.T) {
	const host = "127.0.0.1"
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Fatal(err)
	}
	var ephemeral int
	if _, err := fmt.Sscan(string(text), &ephemeral); err != nil {
		t.Fatal(err)
	}
	server, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		ports, err := port.Free(host, 100)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(ports)
		if len(slices.Compact(ports)) != 100 {
			t.Errorf("found a port twice: %q", ports)
		}
		for _, p := range ports {
			if n, err := strconv.Atoi(p); err != nil || n >= ephemeral {
				t.Errorf("found %q, which the system may give away, %v", p, err)
			}
		}
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		if server, err = net.Listen("tcp", net.JoinHostPort(host, ports[0])); err != nil {
			t.Fatalf("found %s: %v", ports[0], err)
		}
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if ports, err := port.Free("192.0.2.1", 1); err == nil { // an address for documentation (RFC 5737)
		t.Errorf("found %v", ports)
	}
}
