package server

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

const (
	loopback4 = "127.0.0.1"
	loopback6 = "::1"
	// maxPort is the highest port.
	maxPort = 65535
	// anyPort bounds how many ports are tried if any will do.
	anyPort = 10
	// nextPort is the distance of the suggested port: `sam local` takes the ports beside.
	nextPort = 10
)

// listen takes the port on both loopback addresses, since localhost may mean either.
// Without IPv6 it takes the first alone. Zero means any port.
func listen(port int) (both []net.Listener, err error) {
	if port < 0 || port > maxPort {
		return nil, fmt.Errorf("port %d is out of range: choose one up to %d: make run PORT=3000", port, maxPort)
	}
	for range anyPort {
		if both, err = listenBoth(port); port != 0 || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d is taken; choose another: make run PORT=%d", port, port+nextPort)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("port %d is reserved for the system; choose another: make run PORT=3000", port)
	case err != nil:
		return nil, fmt.Errorf("listening: %w", err)
	}
	return both, nil
}

func listenBoth(port int) ([]net.Listener, error) {
	first, err := net.Listen("tcp", net.JoinHostPort(loopback4, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	_, given, err := net.SplitHostPort(first.Addr().String())
	if err != nil {
		return nil, errors.Join(err, first.Close())
	}
	second, err := net.Listen("tcp", net.JoinHostPort(loopback6, given))
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		return []net.Listener{first}, nil
	case err != nil:
		return nil, errors.Join(err, first.Close())
	}
	return []net.Listener{first, second}, nil
}
