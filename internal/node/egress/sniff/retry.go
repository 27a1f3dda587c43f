package sniff

import "bytes"

const (
	recordChange       = 20 // of the cipher
	recordAlert        = 21
	recordData         = 23
	messageServerHello = 2

	recordHead = 5
	retryHead  = recordHead + 4 + 2 // before the random of a ServerHello
)

// retryRandom is the random of a ServerHello by which a server asks the client
// to begin anew (RFC 8446, 4.1.3).
var retryRandom = []byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

// RetrySize is how many bytes of a server are enough for Retry.
const RetrySize = retryHead + 32

// Retry tells from a server's first bytes whether it asks a TLS client to begin
// anew; known is false while they are too few. A server whose records are too
// small to tell is taken to ask.
func Retry(b []byte) (retry, known bool) {
	if len(b) > 0 && b[0] != recordHandshake || len(b) > recordHead && b[recordHead] != messageServerHello {
		return false, true
	}
	if len(b) < RetrySize {
		return false, false
	}
	small := int(b[3])<<8|int(b[4]) < RetrySize-recordHead
	return small || bytes.Equal(b[retryHead:RetrySize], retryRandom), true
}

// Step is what the next record of a client is, after its ClientHello.
type Step int

const (
	Wait  Step = iota // not whole yet
	Pass              // nothing that could name a host
	Shake             // of a handshake: a second ClientHello, if the server asked for one
	Wrong             // not TLS
)

// NextRecord tells what the record is that b begins with, and how long.
func NextRecord(b []byte) (Step, int) {
	if len(b) > 1 && b[1] != 3 {
		return Wrong, 0
	}
	if len(b) < recordHead {
		return Wait, 0
	}
	size := recordHead + int(b[3])<<8 + int(b[4])
	switch b[0] {
	case recordHandshake:
		return Shake, size
	case recordChange, recordAlert, recordData:
	default:
		return Wrong, 0
	}
	if len(b) < size {
		return Wait, 0
	}
	return Pass, size
}
