package host

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/durable"
	"github.com/reeve-run/reeve/journal"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// handlePrefix begins every cell handle.
const handlePrefix = "cell_"

// handleEncoding keeps the order of the numbers it encodes.
var handleEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// handleEpoch is where the time in a handle starts.
var handleEpoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// tick is the unit of the time in a handle: 35 bits of it reach for a century.
const tick = 100 * time.Millisecond

// handles makes cell handles: 35 bits of time and 25 random bits, rising within a
// core, so that lists are in order. A handle that is taken all the same is refused
// by the store and made anew.
type handles struct {
	mu   sync.Mutex // guards last
	last uint64
}

func (h *handles) next(now time.Time) string {
	var r [4]byte
	_, _ = rand.Read(r[:]) // never fails, by its contract
	random := binary.BigEndian.Uint32(r[:])
	h.mu.Lock()
	defer h.mu.Unlock()
	n := ticks(now)<<25 | uint64(random>>7)
	if n <= h.last {
		n = h.last + 1 + uint64(random>>22)
	}
	h.last = n
	return handlePrefix + encodeHandle(n)
}

// floor is before every handle made at or after now.
func (*handles) floor(now time.Time) string { return handlePrefix + encodeHandle(ticks(now)<<25) }

func ticks(now time.Time) uint64 {
	return uint64(max(0, now.Sub(handleEpoch)/tick)) & (1<<35 - 1)
}

// encodeHandle writes the low 60 bits of n as twelve characters.
func encodeHandle(n uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n<<4)
	return handleEncoding.EncodeToString(b[:])[:12]
}

// fullHandle is the handle, or the beginning of one, with its prefix.
func fullHandle(s string) string {
	if strings.HasPrefix(s, handlePrefix) {
		return s
	}
	return handlePrefix + s
}

// identifier reports whether s is an id by CP-006.
func identifier(s string) bool {
	if len(s) < 1 || len(s) > 128 {
		return false
	}
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}

// identity is the file that gives a data directory's host its name, and counts its
// lives.
type identity struct {
	ID          string `json:"id"`
	Incarnation int64  `json:"incarnation"`
}

// incarnate begins a life of the host of this directory. The caller holds the lock.
func incarnate(path string) (journal.Host, error) {
	id := identity{ID: "host-" + strings.ToLower(token(10))}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return journal.Host{}, fault.Wrap(err, fault.Unavailable, "read host identity", path)
	default:
		if err := json.Unmarshal(b, &id, json.RejectUnknownMembers(true)); err != nil {
			return journal.Host{}, fault.Wrap(err, fault.Unavailable, "read host identity", path).
				WithNext("restore %s, or remove it when no other core uses this store", path)
		}
	}
	id.Incarnation++
	if b, err = json.Marshal(id); err != nil {
		return journal.Host{}, fault.Wrap(err, fault.Internal, "write host identity", path)
	}
	if err := durable.WriteFile(path, append(b, '\n'), 0o600); err != nil {
		return journal.Host{}, err
	}
	return journal.Host{ID: id.ID, Incarnation: id.Incarnation}, nil
}
