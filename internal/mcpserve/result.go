package mcpserve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// Statuses of a result that is a fault: what reeve knows of the cell.
const (
	notRun  = "not_run" // nothing of it ran
	unknown = "unknown" // it may have run, in part or whole
)

// disposition says what a failed call left behind. cell is the handle of a cell
// that is known to have started; before that only codes that mean so leave a doubt
// (CP-134).
func disposition(err error, cell string) string {
	switch code := fault.CodeOf(err); {
	case code == fault.Internal, code == fault.Unknown, cell != "":
		return unknown
	default:
		return notRun
	}
}

// faultBody is the error member of reeve's envelope.
type faultBody struct {
	Code      fault.Code `json:"code"`
	Message   string     `json:"message"`
	Next      string     `json:"next"`
	Retryable bool       `json:"retryable"`
}

func body(err error) *faultBody {
	b := &faultBody{Code: fault.CodeOf(err), Message: err.Error()}
	var e *fault.Error
	if errors.As(err, &e) {
		b.Next, b.Retryable = inTools(e.Next), e.Retry
	}
	return b
}

// rpcError is err for a request that is no tool call and so has no result to put a
// fault in. The fault itself is in the data member.
func rpcError(err error) *jsonrpc.Error {
	f := body(err)
	out := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: f.Message}
	switch f.Code {
	case fault.NotFound, fault.InvalidRequest, fault.LimitExceeded, fault.Ambiguous:
		out.Code = jsonrpc.CodeInvalidParams
	}
	if data, err := json.Marshal(f); err == nil {
		out.Data = data
	}
	return out
}

// executeBody is the structured result of execute. What must not be lost to a
// client that cuts its results stands before the output.
type executeBody struct {
	Status         string           `json:"status"`
	Notice         *control.Notice  `json:"notice"`
	Fault          *faultBody       `json:"fault"`
	Cell           string           `json:"cell"`
	Session        string           `json:"session"`
	Generation     string           `json:"generation"`
	ElapsedMS      int64            `json:"elapsed_ms"`
	QueuedMS       int64            `json:"queued_ms"`
	CPUMS          *int64           `json:"cpu_ms"`
	BytesTotal     int64            `json:"bytes_total"`
	TruncatedBytes int64            `json:"truncated_bytes"`
	Cause          *event.Cause     `json:"cause"`
	Unrecorded     bool             `json:"unrecorded"`
	Artifacts      []event.Artifact `json:"artifacts"`
	Error          *string          `json:"error"`
	Output         []event.Output   `json:"output"`
}

func executeBodyOf(r control.CellResult) executeBody {
	b := executeBody{
		Status: r.Status, Notice: r.Notice, Cell: r.Cell, Session: r.Session, Generation: r.Generation,
		ElapsedMS: r.ElapsedMS, QueuedMS: r.QueuedMS, CPUMS: r.CPUMS,
		BytesTotal: r.BytesTotal, TruncatedBytes: r.TruncatedBytes,
		Cause: r.Cause, Unrecorded: r.Unrecorded, Artifacts: r.Artifacts, Error: r.Error, Output: r.Output,
	}
	if b.Artifacts == nil {
		b.Artifacts = []event.Artifact{}
	}
	if b.Output == nil {
		b.Output = []event.Output{}
	}
	return b
}

func (s *Server) executeResult(ctx context.Context, svc control.Service, r control.CellResult) *mcp.CallToolResult {
	images, missing := s.images(ctx, svc, r.Artifacts)
	res := structured(executeBodyOf(r), cellText(r, missing))
	res.Content = append(res.Content, images...)
	return res
}

// executeFault is the result for a cell of which reeve cannot give the outcome.
func executeFault(r control.CellResult, status string, err error) *mcp.CallToolResult {
	r.Status = status
	message := err.Error()
	r.Error = &message
	b := executeBodyOf(r)
	b.Fault = body(err)
	res := structured(b, faultText(status, r.Cell, b.Fault))
	res.IsError = true
	return res
}

func structured(v any, text string) *mcp.CallToolResult {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "encode result: " + err.Error()}}}
	}
	return &mcp.CallToolResult{
		StructuredContent: rawJSON(b),
		Content:           []mcp.Content{&mcp.TextContent{Text: text}},
	}
}

// rawJSON is encoded as it is.
type rawJSON []byte

// MarshalJSON returns r itself.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

func faultText(status, cell string, f *faultBody) string {
	var b strings.Builder
	fmt.Fprintf(&b, "reeve fault %s: %s\n", f.Code, f.Message)
	switch status {
	case notRun:
		b.WriteString("nothing ran\n")
	case unknown:
		b.WriteString("outcome unknown\n")
	}
	if cell != "" {
		fmt.Fprintf(&b, "cell: %s\n", cell)
	}
	if f.Next != "" {
		fmt.Fprintf(&b, "next: %s\n", f.Next)
	}
	return b.String()
}

// cellText is the result for a model whose client shows only text: first what must
// be known, then what was printed, last where it can be read again.
func cellText(r control.CellResult, missing []string) string {
	var b strings.Builder
	if r.Notice != nil {
		fmt.Fprintf(&b, "[notice: %s]\n", r.Notice.Text)
	}
	if r.Unrecorded {
		b.WriteString("[notice: the outcome could not be recorded yet; this result is all the same what happened]\n")
	}
	if r.TruncatedBytes > 0 {
		fmt.Fprintf(&b, "[cut by reeve: the first and last part of the output follow, %d of %d bytes; "+
			"read the rest with status, cell=%q and offset]\n", r.BytesTotal-r.TruncatedBytes, r.BytesTotal, r.Cell)
	}
	for _, o := range r.Output {
		b.WriteString(o.Text)
		if o.Text != "" && !strings.HasSuffix(o.Text, "\n") {
			b.WriteByte('\n')
		}
	}
	if r.Error != nil && *r.Error != "" {
		b.WriteString(strings.TrimRight(*r.Error, "\n"))
		b.WriteByte('\n')
	}
	if r.Cause != nil && r.Status != string(event.CellOK) {
		fmt.Fprintf(&b, "[cause: %s]\n", r.Cause.Text)
	}
	for _, m := range missing {
		fmt.Fprintf(&b, "[%s]\n", m)
	}
	fmt.Fprintf(&b, "[%s in %s, cell %s, session %s, generation %s]", r.Status,
		(time.Duration(r.ElapsedMS) * time.Millisecond).String(), r.Cell, r.Session, r.Generation)
	return b.String()
}

const (
	// imageBytes bounds one image in a result and imagesBytes all of them: in base64
	// they stay below the 5 MB that providers accept for one image.
	imageBytes  = 3 << 20
	imagesBytes = 6 << 20
)

// images loads the cell's images. What is left out is named with the way to it.
func (s *Server) images(ctx context.Context, svc control.Service, list []event.Artifact) (content []mcp.Content, missing []string) {
	left := int64(imagesBytes)
	for _, a := range list {
		if !strings.HasPrefix(a.MIME, "image/") {
			continue
		}
		data, err := s.image(ctx, svc, a, left)
		if err != nil {
			missing = append(missing, fmt.Sprintf("image %s is not shown: %v; read resource reeve://artifact/%s", a.ID, err, a.SHA256))
			continue
		}
		left -= int64(len(data))
		content = append(content, &mcp.ImageContent{Data: data, MIMEType: a.MIME})
	}
	return content, missing
}

func (s *Server) image(ctx context.Context, svc control.Service, a event.Artifact, left int64) ([]byte, error) {
	if a.Size > imageBytes || a.Size > left {
		return nil, fmt.Errorf("%d bytes are too many for one result", a.Size)
	}
	// The client may have cancelled the call; its result is still delivered whole.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachFor)
	defer cancel()
	r, err := svc.Artifact(ctx, a.SHA256)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, imageBytes+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) != a.Size {
		return nil, fmt.Errorf("it has %d bytes, recorded are %d", len(data), a.Size)
	}
	return data, nil
}

// arguments decodes a call's arguments strictly: a member that the tool does not
// have is named instead of dropped.
//
// An empty session is refused here for all tools: it would silently mean the
// connection's own, which is what leaving it out means.
func arguments(p *mcp.CallToolParamsRaw, into any) error {
	raw := bytes.TrimSpace(p.Arguments)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		raw = []byte("{}")
	}
	if err := json.Unmarshal(raw, into, json.RejectUnknownMembers(true)); err != nil {
		return fault.Wrap(err, fault.InvalidRequest, "read arguments", p.Name).WithNext("call again with arguments that fit the tool's input schema")
	}
	var named struct {
		Session *string `json:"session"`
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		return fault.Wrap(err, fault.InvalidRequest, "read arguments", p.Name)
	}
	if named.Session != nil && *named.Session == "" {
		return fault.New(fault.InvalidRequest, "read arguments", "session", "an empty name is no session").
			WithNext("name a session, or leave session out for this connection's own")
	}
	return nil
}
