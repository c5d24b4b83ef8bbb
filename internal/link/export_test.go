package link

// Frames are not part of the package's surface; the tests of their codec see them
// through these.
type Frame = frame

func AppendFrame(dst []byte, f *Frame) ([]byte, error) { return appendFrame(dst, f) }
func DecodeFrame(text []byte) (Frame, error)           { return decodeFrame(text) }
func CheckValue(text []byte) error                     { return checkValue(text) }

// SampleFrames is one frame of every kind.
func SampleFrames() []Frame {
	greeting := &hello{min: 1, max: 3, client: "mcp", version: "1.2 \"é\"", configID: "ab", config: []byte(`{"store":"cd","e":["x"]}`), readOnly: true}
	odd := "q\"b\\n\x01\u2028é😀"
	body := []byte(`{"a":[1,-2.5e+3,"x\ud83d\ude00",null,true,{}],"b":{}}`)
	return []Frame{
		{kind: handshake, hello: greeting},
		{kind: handshakeAck, hello: &hello{protocol: 2, version: "v", pid: 77, configID: "ef", config: []byte(`{}`)}},
		{kind: request, id: 1, method: "request", requestID: odd, replay: true, timeout: 30000, body: body},
		{kind: response, id: maxNumber, body: []byte(`"x"`)},
		{kind: failure, id: 3, fault: &refusal{code: "not_found", message: odd, next: odd, retryable: true, reason: Closing}},
		{kind: failure, fault: &refusal{code: "internal"}},
		{kind: cancel, id: 4},
		{kind: subscribe, id: 5, method: "events", requestID: "r", body: []byte(`[]`)},
		{kind: subscribeAck, id: 5},
		{kind: unsubscribe, id: 5},
		{kind: unsubscribeAck, id: 5},
		{kind: event, id: 5, seq: 9, body: []byte(`0`)},
	}
}
