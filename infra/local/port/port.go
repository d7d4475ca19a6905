// Package port finds ports for servers that cannot be given a socket and may be
// killed and restarted on the same one.
package port

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports that are given out lie below those that systems choose from by
// themselves (from 32768 on Linux, from 49152 elsewhere): no connection
// takes one by itself, not even while its server is being started again.
const (
	lowest = 20000
	beyond = 32768
	tries  = 100
)

// Free finds as many different ports of the host on which no program listens. Another
// process may find the same one at the same time, which is unlikely: a server that
// cannot listen on its port needs another.
func Free(host string, count int) (ports []string, err error) {
	for taken := 0; len(ports) < count; {
		port := strconv.Itoa(lowest + rand.IntN(beyond-lowest)) //nolint:gosec // no secret
		listener, fault := net.Listen("tcp", net.JoinHostPort(host, port))
		if fault == nil {
			ports = append(ports, port)
			defer func() { err = errors.Join(err, listener.Close()) }() // held until all are found
		} else if taken++; taken == tries {
			return nil, fmt.Errorf("looking for a free port: %w", fault)
		}
	}
	return ports, nil
}
