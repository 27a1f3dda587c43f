// Package wire is the byte format of the host–guest protocol, shared by both
// ends: frames, the messages inside them, and a decoder that finds its way back
// into a stream whose last writer was killed in the middle of a frame.
//
// It is linked into process 1 of every sandbox, so it imports next to nothing.
// docs/contribute/guest-protocol.md describes the protocol in prose.
package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// Protocol is the version of the messages. The frame's own layout never
// changes, so that any two versions can still exchange Hello and Welcome.
const Protocol = 1

// HeaderSize is the length of a frame's header in bytes.
const HeaderSize = 36

const (
	// MaxRequest bounds a whole host-to-guest frame. The kernel writes that
	// much to a FIFO wholly or not at all, so a killed host leaves no torn frame.
	MaxRequest = 4096
	// MaxPayload bounds the payload of a guest-to-host frame.
	MaxPayload = 64 << 10
	// MaxMessage bounds a message put together from several frames.
	MaxMessage = 32 << 20
	// MaxRuns bounds how many runs may be live in one sandbox.
	MaxRuns = 64
	// Spool bounds, in bytes, the frames a guest keeps until they are acknowledged.
	Spool = 1 << 20
	// MaxAsk and MaxAnswer bound an HTTP request that a program makes of the host, and the
	// response; MaxAsks is how many of a run may wait for theirs.
	MaxAsk    = 60 << 10
	MaxAnswer = 4 << 20
	MaxAsks   = 8
	// AckEvery is how many payload bytes a host takes before it acknowledges.
	AckEvery = 256 << 10
)

// UID, GID and Home are the unprivileged user of every sandbox, as
// internal/core/runtime has them; a test holds the two together. The guest cannot
// import that package without linking far more than it needs.
const (
	UID  = 1000
	GID  = 1000
	Home = "/home/user"
	// Skills is where files are root's: programs read them, and cannot change them.
	Skills = "/skills"
	// Uploads is where likewise copies of files are.
	Uploads = "/mnt/session"
	// HomeAlias is what the contract calls Home: a link to it, where the image has nothing
	// of that name.
	HomeAlias = "/home/baponi"
	// Workspace is another, where a guest daemon runs.
	Workspace = "/workspace"
)

// Shared is where a sandbox that can take a home on has the folder that the host
// puts it into, under the name HomeName. The guest takes it off once it has it.
const (
	Shared   = "/.home"
	HomeName = "home"
)

// Type says what a frame carries.
type Type uint8

// Frames from host to guest.
const (
	Hello       Type = iota + 1 // connects, and names the versions that the host knows. ID: nonce; Seq: last frame the host has
	Ack                         // acknowledges frames. Seq: last frame the host has
	Warm                        // starts an interpreter that waits for a program. ID: request
	Run                         // starts a program, with timeout, output limit, files and stdin. ID: run
	Kill                        // sends a signal to a run. ID: request
	Reseed                      // sets a new host name and machine id after a restore. ID: request
	Ping                        // asks whether the guest is alive. ID: request
	Confine                     // sets the permission rules, before the first program. ID: request
	Enter                       // mounts the home of a thread. ID: request
	StartDaemon                 // starts the guest daemon. ID: request
	Protect                     // makes directories read-only. ID: request
	Answer                      // answers an Ask, with at most 4 MiB. ID: run
	Renew                       // prepares a shared kernel for the next program. ID: request
)

// Frames from guest to host. All but Welcome are spooled and numbered.
const (
	Welcome Type = iota + 0x81 // answers Hello, with the chosen version and the live runs. ID: the Hello's nonce
	Reply                      // answers a request, with an error if it failed. ID: request
	Stdout                     // output. ID: run; payload: offset in the stream, bytes
	Stderr                     // likewise
	Exit                       // the end of a run: status, signal, peak memory, CPU time. ID: run; its last frame
	Refused                    // why a program did not start. ID: run; its last frame
	Ask                        // an HTTP request of a program, with at most 60 KiB. ID: run
)

// Flags on the frames of a message that does not fit one frame.
const (
	First uint8 = 1 << iota
	Last
)

// OffsetSize is the length of the stream offset that begins the payload of
// Stdout and Stderr.
const OffsetSize = 8

const magic = "\xa7tol"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Frame is one decoded frame. Payload is only valid until the decoder is used
// again.
type Frame struct {
	Type    Type
	Flags   uint8
	ID      uint64
	Seq     uint64
	Payload []byte
}

// PutHeader writes the header of f into b[:HeaderSize], for the payload that
// already stands at b[HeaderSize : HeaderSize+n].
func PutHeader(b []byte, f Frame, n int) {
	_ = b[HeaderSize-1]
	copy(b, magic)
	b[4] = 1
	b[5] = byte(f.Type)
	b[6] = f.Flags
	b[7] = 0
	binary.LittleEndian.PutUint64(b[8:], f.ID)
	binary.LittleEndian.PutUint64(b[16:], f.Seq)
	binary.LittleEndian.PutUint32(b[24:], uint32(n))
	binary.LittleEndian.PutUint32(b[28:], crc32.Checksum(b[HeaderSize:HeaderSize+n], castagnoli))
	binary.LittleEndian.PutUint32(b[32:], crc32.Checksum(b[:32], castagnoli))
}

// AppendFrame appends f to b.
func AppendFrame(b []byte, f Frame) []byte {
	at := len(b)
	b = append(b, make([]byte, HeaderSize)...)
	b = append(b, f.Payload...)
	PutHeader(b[at:], f, len(f.Payload))
	return b
}

// Size returns the length of the frame that begins b, and its sequence number.
// b must begin with a header that PutHeader wrote.
func Size(b []byte) (n int, seq uint64) {
	return HeaderSize + int(binary.LittleEndian.Uint32(b[24:])), binary.LittleEndian.Uint64(b[16:])
}

// Peek returns the type and ID of the frame that begins b, under Size's terms.
func Peek(b []byte) (Type, uint64) { return Type(b[5]), binary.LittleEndian.Uint64(b[8:]) }

// header reads a header and reports whether it is whole and undamaged.
func header(b []byte) (f Frame, length uint32, sum uint32, ok bool) {
	if string(b[:4]) != magic || b[4] != 1 {
		return f, 0, 0, false
	}
	if binary.LittleEndian.Uint32(b[32:]) != crc32.Checksum(b[:32], castagnoli) {
		return f, 0, 0, false
	}
	f.Type = Type(b[5])
	f.Flags = b[6]
	f.ID = binary.LittleEndian.Uint64(b[8:])
	f.Seq = binary.LittleEndian.Uint64(b[16:])
	return f, binary.LittleEndian.Uint32(b[24:]), binary.LittleEndian.Uint32(b[28:]), true
}
