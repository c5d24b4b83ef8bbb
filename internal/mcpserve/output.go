package mcpserve

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// Bytes of output in one answer: rangeMax is the bound that a cell's own record
// has, so that no way of asking gives more at once.
const (
	rangeDefault = 32 << 10
	rangeMax     = 64 << 10
)

// outputRange is a run of output bytes without a gap inside.
type outputRange struct {
	offset, total int64
	data          []byte
	gap           *control.Gap // what is missing at or after offset
	next          *int64       // where to go on; nil at the end of what there is
}

// outputBody is a range as text. Bytes that are no UTF-8, which only a range that
// begins or ends inside a character has, are shown as U+FFFD and flagged.
type outputBody struct {
	Offset int64        `json:"offset"`
	Bytes  int64        `json:"bytes"`
	Total  int64        `json:"total"`
	Next   *int64       `json:"next_offset"`
	Gap    *control.Gap `json:"gap"`
	Lossy  bool         `json:"lossy"`
	Text   string       `json:"text"`
}

func (r outputRange) body() *outputBody {
	return &outputBody{
		Offset: r.offset, Bytes: int64(len(r.data)), Total: r.total, Next: r.next, Gap: r.gap,
		Lossy: !utf8.Valid(r.data), Text: strings.ToValidUTF8(string(r.data), "\uFFFD"),
	}
}

// readRange reads up to limit bytes of a cell's output from offset on. It stops at
// a gap and, when it can, between two characters.
func readRange(ctx context.Context, svc control.Service, cell string, offset, limit int64) (outputRange, error) {
	o, err := svc.Output(ctx, cell, offset)
	if err != nil {
		return outputRange{}, err
	}
	r := outputRange{offset: o.Offset, total: o.Total}
	stop := o.Total
	if g := o.Gap; g != nil && g.To > o.Offset {
		r.gap = g
		if g.From > o.Offset {
			stop = g.From
		}
	}
	want := min(limit, max(stop-o.Offset, 0))
	r.data = make([]byte, want)
	n, err := io.ReadFull(o.Body, r.data)
	r.data = r.data[:n]
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // of a running cell less may be there than was promised
	}
	if err = errors.Join(err, o.Body.Close()); err != nil {
		return outputRange{}, fault.Wrap(err, fault.Unavailable, "read output", cell)
	}
	if cut := wholeRunes(r.data); o.Offset+int64(n) < stop && cut > 0 {
		r.data = r.data[:cut]
	}
	end := o.Offset + int64(len(r.data))
	if g := r.gap; g != nil && end == g.From {
		end = g.To
	}
	if end < o.Total {
		r.next = &end
	}
	return r, nil
}

// wholeRunes is the length of b without a character that is cut off at its end.
func wholeRunes(b []byte) int {
	for back := 1; back <= utf8.UTFMax && back <= len(b); back++ {
		if c := b[len(b)-back]; utf8.RuneStart(c) {
			if utf8.FullRune(b[len(b)-back:]) {
				return len(b)
			}
			return len(b) - back
		}
	}
	return len(b)
}

func (s *Server) registerResources() {
	s.protocol.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "cell output", URITemplate: "reeve://cell/{cell}/output{?offset,limit}", MIMEType: "text/plain; charset=utf-8",
		Description: "What a cell printed, in exact bytes from offset on. _meta says total, next_offset and gap.",
	}, s.outputResource)
	s.protocol.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "artifact", URITemplate: "reeve://artifact/{sha256}",
		Description: "An image or other artifact of a cell.",
	}, s.artifactResource)
}

// outputResource gives a range that is not valid UTF-8 as a blob, so that it is
// exact in any case.
func (s *Server) outputResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	u, err := url.Parse(req.Params.URI)
	if err != nil {
		return nil, mcp.ResourceNotFoundError("reeve://cell/")
	}
	cell := strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/output")
	offset, err1 := queryInt(u.Query(), "offset", 0)
	limit, err2 := queryInt(u.Query(), "limit", rangeDefault)
	if err := errors.Join(err1, err2); err != nil {
		return nil, rpcError(err)
	}
	if limit > rangeMax {
		return nil, rpcError(fault.New(fault.InvalidRequest, "read resource", req.Params.URI, "limit is over %d", rangeMax))
	}
	var got outputRange
	err = s.core.read(ctx, func(ctx context.Context, svc control.Service) error {
		var err error
		got, err = readRange(ctx, svc, cell, offset, limit)
		return err
	})
	if err != nil {
		return nil, rpcError(err)
	}
	c := &mcp.ResourceContents{URI: req.Params.URI, Meta: mcp.Meta{"offset": got.offset, "total": got.total, "next_offset": got.next, "gap": got.gap}}
	if utf8.Valid(got.data) {
		c.Text = string(got.data)
	} else {
		c.Blob, c.MIMEType = got.data, "application/octet-stream"
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}

func queryInt(q url.Values, name string, missing int64) (int64, error) {
	if !q.Has(name) {
		return missing, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0, fault.New(fault.InvalidRequest, "read resource", name, "%q is not a whole number from 0 on", q.Get(name))
	}
	return n, nil
}

func (s *Server) artifactResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	sum := strings.TrimPrefix(req.Params.URI, "reeve://artifact/")
	var data []byte
	err := s.core.read(ctx, func(ctx context.Context, svc control.Service) error {
		r, err := svc.Artifact(ctx, sum)
		if err != nil {
			return err
		}
		data, err = io.ReadAll(io.LimitReader(r, maxArtifact+1))
		return errors.Join(err, r.Close())
	})
	if err != nil {
		return nil, rpcError(err)
	}
	if len(data) > maxArtifact {
		return nil, rpcError(fault.New(fault.LimitExceeded, "read resource", req.Params.URI, "over %d bytes", maxArtifact).
			WithNext("read artifacts/%.2s/%s in the data directory", sum, sum[2:]))
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
		URI: req.Params.URI, Blob: data, MIMEType: "application/octet-stream",
	}}}, nil
}

// maxArtifact bounds an artifact read as a resource; what a cell may display is
// smaller.
const maxArtifact = 16 << 20
