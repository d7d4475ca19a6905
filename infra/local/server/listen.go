package server

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// maxPort is the highest port.
const maxPort = 65535

// listen takes the port on both loopback addresses, since localhost may mean either.
// Without IPv6 it takes the first alone. Zero means any port.
func listen(port int) (both []net.Listener, err error) {
	if port < 0 || port > maxPort {
		return nil, fmt.Errorf("port %d is out of range: choose one up to %d: make run PORT=3000", port, maxPort)
	}
	for range 10 { // a free port of one address may be taken on the other
		if both, err = listenBoth(port); port != 0 || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE): // `sam local` takes the ports beside
		return nil, fmt.Errorf("port %d is taken; choose another: make run PORT=%d", port, port+10)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("port %d is reserved for the system; choose another: make run PORT=3000", port)
	case err != nil:
		return nil, fmt.Errorf("listening: %w", err)
	}
	return both, nil
}

func listenBoth(port int) ([]net.Listener, error) {
	first, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	_, given, err := net.SplitHostPort(first.Addr().String())
	if err != nil {
		return nil, errors.Join(err, first.Close())
	}
	second, err := net.Listen("tcp", net.JoinHostPort("::1", given))
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		return []net.Listener{first}, nil
	case err != nil:
		return nil, errors.Join(err, first.Close())
	}
	return []net.Listener{first, second}, nil
}
