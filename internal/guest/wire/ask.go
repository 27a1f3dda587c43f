package wire

// AskMessage is an HTTP request that a program makes of the host.
type AskMessage struct {
	Host    uint64 // the nonce of the host that it is for: a later one does not answer it
	Number  uint64 // larger than those of the run before it
	Request []byte
}

func (m *AskMessage) Append(b []byte) []byte {
	return putString(putUint(putUint(b, m.Host), m.Number), m.Request)
}

// Decode reports whether p was a whole message. The request stays in p.
func (m *AskMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Host, m.Number, m.Request = r.uint(), r.uint(), r.bytes()
	return r.done()
}

// AnswerMessage is the response to the AskMessage of a number.
type AnswerMessage struct {
	Number   uint64
	Response []byte
}

func (m *AnswerMessage) Append(b []byte) []byte { return putString(putUint(b, m.Number), m.Response) }

// Decode reports whether p was a whole message. The response stays in p.
func (m *AnswerMessage) Decode(p []byte) bool {
	r := reader{b: p}
	m.Number, m.Response = r.uint(), r.bytes()
	return r.done()
}
