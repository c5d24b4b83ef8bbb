package control

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
)

// Names of the server-sent events. Rows of an event query have no name.
const (
	sseProgress = "progress"
	sseAnswer   = "answer" // last: the envelope
)

// stream writes server-sent events. mu makes each event one write.
type stream struct {
	mu  sync.Mutex
	w   io.Writer
	ctl *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return &stream{w: w, ctl: http.NewResponseController(w)}
}

// send writes one event; id 0 and an empty name are left out. A reader that takes
// nothing for the time stuck is cut off.
func (s *stream) send(id int64, name string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "encode event", name)
	}
	var buf bytes.Buffer
	if id != 0 {
		fmt.Fprintf(&buf, "id: %d\n", id)
	}
	if name != "" {
		fmt.Fprintf(&buf, "event: %s\n", name)
	}
	fmt.Fprintf(&buf, "data: %s\n\n", b)
	return s.flush(buf.Bytes())
}

// beat shows that the stream lives.
func (s *stream) beat() error { return s.flush([]byte(": alive\n\n")) }

func (s *stream) flush(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctl.SetWriteDeadline(time.Now().Add(stuck)); err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.ctl.Flush()
}

// message is one server-sent event as read.
type message struct {
	id, name string
	data     []byte
}

// maxMessage bounds what a client holds of one event: the largest cell result with
// every byte escaped is below it.
const maxMessage = 16 << 20

// reader reads server-sent events. The end of the stream is io.EOF.
type reader struct{ r *bufio.Reader }

func (r reader) next() (message, error) {
	var m message
	for {
		line, err := r.line()
		if err != nil {
			return m, err
		}
		field, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case len(line) == 0 && m.data != nil:
			return m, nil
		case field == "id":
			m.id = value
		case field == "event":
			m.name = value
		case field == "data":
			m.data = append(m.data, value...)
		}
	}
}

func (r reader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return nil, fault.New(fault.LimitExceeded, "read stream", "", "an event is over %d bytes", maxMessage)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
		return bytes.TrimSuffix(line, []byte("\n")), nil
	}
}
