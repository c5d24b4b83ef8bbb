// Package peercred tells who is at the other end of a Unix socket.
//
// Invariants: a peer that cannot be identified is not admitted; both ends of a
// connection ask, since a client must not talk to somebody else's core either. The
// package does not know what is said on the connection.
package peercred

import (
	"net"
	"os"

	"github.com/reeve-run/reeve/fault"
)

// SameUser admits a process of the same user at the other end of c and nobody else:
// any other peer, and a connection that is no Unix socket, is fault.Unauthorized.
func SameUser(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return fault.New(fault.Unauthorized, "accept connection", c.RemoteAddr().String(), "not a Unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return fault.Wrap(err, fault.Unauthorized, "read peer", "")
	}
	uid, peerErr := 0, error(nil)
	if err := raw.Control(func(fd uintptr) { uid, peerErr = uidOf(int(fd)) }); err != nil {
		return fault.Wrap(err, fault.Unauthorized, "read peer", "")
	}
	if peerErr != nil {
		return fault.Wrap(peerErr, fault.Unauthorized, "read peer", "")
	}
	if uid != os.Geteuid() {
		return fault.New(fault.Unauthorized, "accept connection", "", "the peer runs as user %d, this end as %d", uid, os.Geteuid()).
			WithNext("run reeve as the user who owns the data directory")
	}
	return nil
}
