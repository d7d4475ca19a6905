package port_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"

	"signalbox.dev/infra/local/port"
	"signalbox.dev/infra/testkit"
)

// Free returns different ports that nobody listens on and that the system gives to
// no connection by itself.
func TestFree(t *testing.T) {
	const host = "127.0.0.1"
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	testkit.Must(t, err)
	var ephemeral int
	if _, err := fmt.Sscan(string(text), &ephemeral); err != nil {
		t.Fatal(err)
	}
	ports, err := port.Free(host, 100)
	testkit.Must(t, err)
	for _, p := range ports {
		if n, err := strconv.Atoi(p); err != nil || n >= ephemeral {
			t.Errorf("found %q, which the system may give away, %v", p, err)
		}
		server, err := net.Listen("tcp", net.JoinHostPort(host, p)) // fails for a port that was found twice
		if err != nil {
			t.Fatalf("found %s: %v", p, err)
		}
		defer func() { _ = server.Close() }()
	}
	if ports, err := port.Free("192.0.2.1", 1); err == nil { // an address for documentation (RFC 5737)
		t.Errorf("found %v", ports)
	}
}
