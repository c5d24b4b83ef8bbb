package control

import (
	"net"
	"os"

	"github.com/reeve-run/reeve/fault"
)

// checkPeer admits a process of the same user at the other end of a Unix socket and
// nobody else. Both ends check: a client must not talk to somebody else's core.
func checkPeer(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return fault.New(fault.Unauthorized, "accept connection", c.RemoteAddr().String(), "not a Unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return fault.Wrap(err, fault.Unauthorized, "read peer", "")
	}
	uid, peerErr := 0, error(nil)
	if err := raw.Control(func(fd uintptr) { uid, peerErr = peerUID(int(fd)) }); err != nil {
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
