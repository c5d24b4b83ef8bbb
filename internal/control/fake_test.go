package control_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/control"
)

// service answers every call with a value of which no member is zero, and remembers
// what it was asked. err, when set, is every answer.
type service struct {
	mu    sync.Mutex
	calls []string
	err   error

	progress []control.CellProgress // said by Execute
	rows     []control.EventRow     // given by Events
	execute  func(ctx context.Context, r control.ExecuteRequest, progress func(control.CellProgress)) (control.CellResult, error)
	follow   func(ctx context.Context, q control.EventQuery, row func(control.EventRow) error) error
	inter    func(cell string)
	request  func(ctx context.Context, r control.RequestCall) (control.RequestAnswer, error)
}

func newService() *service {
	s := &service{}
	for i := range 3 {
		p := filled[control.CellProgress]()
		p.Text = fmt.Sprintf("line %d\n\u2028data: x\n", i)
		s.progress = append(s.progress, p)
		e := filled[control.EventRow]()
		e.ID, e.Payload = int64(i+1), control.Raw(`{"n":12345678901234567890,"s":"a\nb"}`)
		s.rows = append(s.rows, e)
	}
	return s
}

func (s *service) note(method string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf("%s %+v", method, args))
	return s.err
}

func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

func give[T any](err error) (T, error) {
	if err != nil {
		var zero T
		return zero, err
	}
	return filled[T](), nil
}

// filled sets every member of a T, each to something else.
func filled[T any]() T {
	var v T
	n := 0
	fill(reflect.ValueOf(&v).Elem(), &n)
	return v
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d é <\u2028>", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n) + 1<<40)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[control.Raw]() {
			v.SetBytes([]byte(`{"a":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic("fill: " + v.Type().String())
	}
}

func (s *service) Execute(ctx context.Context, r control.ExecuteRequest, progress func(control.CellProgress)) (control.CellResult, error) {
	if s.execute != nil {
		_ = s.note("Execute", r)
		return s.execute(ctx, r, progress)
	}
	if err := s.note("Execute", r); err != nil {
		return control.CellResult{}, err
	}
	if progress != nil {
		for _, p := range s.progress {
			progress(p)
		}
	}
	return give[control.CellResult](nil)
}

func (s *service) Cell(_ context.Context, cell string) (control.CellDetail, error) {
	return give[control.CellDetail](s.note("Cell", cell))
}

func (s *service) ListCells(_ context.Context, session string, max int) ([]control.Cell, error) {
	return give[[]control.Cell](s.note("ListCells", session, max))
}

func (s *service) Interrupt(_ context.Context, cell string, by event.Actor) (control.InterruptReport, error) {
	if s.inter != nil {
		s.inter(cell)
	}
	return give[control.InterruptReport](s.note("Interrupt", cell, by))
}

func (s *service) Output(_ context.Context, cell string, offset int64) (control.OutputRange, error) {
	if err := s.note("Output", cell, offset); err != nil {
		return control.OutputRange{}, err
	}
	return control.OutputRange{
		Offset: 7, Total: 200_007, Gap: &control.Gap{From: 9, To: 12},
		Body: io.NopCloser(bytes.NewReader(bytes.Repeat([]byte("ab\x00\xff"), 50_000))),
	}, nil
}

func (s *service) Session(_ context.Context, id string) (control.Session, error) {
	return give[control.Session](s.note("Session", id))
}

func (s *service) ListSessions(context.Context) ([]control.Session, error) {
	return nil, s.note("ListSessions")
}

func (s *service) Resume(_ context.Context, id string, by event.Actor) (control.Session, error) {
	return give[control.Session](s.note("Resume", id, by))
}

func (s *service) CloseSession(_ context.Context, id string, by event.Actor) (control.Session, error) {
	return give[control.Session](s.note("CloseSession", id, by))
}

func (s *service) Namespace(_ context.Context, id string) (control.Namespace, error) {
	return give[control.Namespace](s.note("Namespace", id))
}

func (s *service) ListNamespaces(context.Context) ([]control.Namespace, error) {
	return give[[]control.Namespace](s.note("ListNamespaces"))
}

func (s *service) ResetNamespace(_ context.Context, id string, by event.Actor) (control.Session, error) {
	return give[control.Session](s.note("ResetNamespace", id, by))
}

func (s *service) Events(ctx context.Context, q control.EventQuery, row func(control.EventRow) error) error {
	if err := s.note("Events", q); err != nil {
		return err
	}
	if s.follow != nil {
		return s.follow(ctx, q, row)
	}
	for _, e := range s.rows {
		if err := row(e); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) Artifact(_ context.Context, sha256 string) (io.ReadCloser, error) {
	if err := s.note("Artifact", sha256); err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader([]byte("content\x00\xff"))), nil
}

func (s *service) Verify(context.Context) (control.VerifyReport, error) {
	return give[control.VerifyReport](s.note("Verify"))
}

func (s *service) Anchor(context.Context) (control.AnchorReport, error) {
	return give[control.AnchorReport](s.note("Anchor"))
}

func (s *service) Usage(context.Context) (control.Usage, error) {
	return give[control.Usage](s.note("Usage"))
}

func (s *service) Status(context.Context) (control.Status, error) {
	return give[control.Status](s.note("Status"))
}

func (s *service) Processes(context.Context) ([]control.Process, error) {
	return give[[]control.Process](s.note("Processes"))
}

func (s *service) Shutdown(_ context.Context, by event.Actor) error { return s.note("Shutdown", by) }

func (s *service) Request(ctx context.Context, r control.RequestCall) (control.RequestAnswer, error) {
	err := s.note("Request", r)
	if s.request != nil {
		return s.request(ctx, r)
	}
	return give[control.RequestAnswer](err)
}

var (
	_    control.Service = (*service)(nil)
	when                 = time.Date(2031, 2, 3, 4, 5, 6, 7_000_000, time.UTC)
)
