package mcpserve

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/reeve-run/reeve/fault"
)

// TokenFile is the file of a data directory that holds the token of HTTP clients.
const TokenFile = "mcp.token"

// Token reads the token of a data directory and makes one when there is none. A file
// that others may read is refused: the token in it has to be taken as known.
func Token(dir string) (string, error) {
	const op = "read token"
	path := filepath.Join(dir, TokenFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		return makeToken(f)
	case !errors.Is(err, fs.ErrExist):
		return "", fault.Wrap(err, fault.Unavailable, "make token", path)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, op, path)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return "", fault.New(fault.Usage, op, path, "it has mode %s, others may know it", info.Mode()).
			WithNext("rm %s, and give clients the new token that is made then", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, op, path)
	}
	token := strings.TrimSpace(string(b))
	if len(token) < 32 {
		return "", fault.New(fault.Usage, op, path, "it holds no token of 32 characters or more").WithNext("rm %s", path)
	}
	return token, nil
}

func makeToken(f *os.File) (string, error) {
	var b [32]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	token := hex.EncodeToString(b[:])
	_, err := f.WriteString(token + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fault.Wrap(errors.Join(err, os.Remove(f.Name())), fault.Unavailable, "make token", f.Name())
	}
	return token, nil
}
