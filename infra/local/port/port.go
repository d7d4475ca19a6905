// Package port finds ports for servers that cannot be given a socket and that may be
// killed and restarted on the same port.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports lie below those that systems choose by themselves (from 32768 on
// Linux, from 49152 elsewhere). So no connection takes one of them, not even
// while its server is being started again.
const (
	lowest = 20000
	beyond = 32768
	tries  = 100
)

// Free finds a port of the loopback address on which no program listens. Another
// process may find the same port at the same time, which is unlikely. A server that
// cannot listen on its port needs another.
func Free() (string, error) {
	var failed error
	for range tries {
		port := strconv.Itoa(lowest + rand.IntN(beyond-lowest)) //nolint:gosec // no secret
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return port, listener.Close()
		}
		failed = err
	}
	return "", fmt.Errorf("looking for a free port: %w", failed)
}
