package engines

import (
	"errors"
	"fmt"
	"net"
)

// freePort finds a port for an engine, which cannot be handed a socket, and keeps
// others away from it meanwhile. A connection that was closed from the port's side
// first leaves it in TIME_WAIT for a minute: the system then gives it to nobody who
// asks for any port, while a server that asks for it by number may have it.
// Without that, engines that start side by side now and then get the same one.
func freePort(host string) (port string, err error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return "", fmt.Errorf("reserving a port: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	server, err := listener.Accept()
	if err != nil {
		return "", fmt.Errorf("reserving a port: %w", err)
	}
	if err := server.Close(); err != nil {
		return "", fmt.Errorf("reserving a port: %w", err)
	}
	_, port, err = net.SplitHostPort(listener.Addr().String())
	return port, err
}
