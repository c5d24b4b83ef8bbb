package durable

import (
	"errors"

	"golang.org/x/sys/unix"
)

// IsFull reports whether err means that the disk or the quota is used up.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// Free returns the bytes an ordinary process may still write below path.
func Free(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, wrap(err, "read free space", path)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // of another type on other systems
}
