package wire

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

func TestConstantsMatchTheSandbox(t *testing.T) {
	if UID != runtime.UID || GID != runtime.GID || Home != runtime.Home {
		t.Error("package sandbox has another user or home")
	}
}

func frame(seq uint64, payload []byte) Frame {
	return Frame{Type: Stdout, Flags: First | Last, ID: 7, Seq: seq, Payload: payload}
}

// feed gives a decoder a stream in pieces and returns copies of the frames.
func feed(d *Decoder, stream []byte, piece func() int) (frames []Frame) {
	for {
		for {
			f, ok := d.Next()
			if !ok {
				break
			}
			f.Payload = bytes.Clone(f.Payload)
			frames = append(frames, f)
		}
		if len(stream) == 0 {
			return frames
		}
		space := d.Space()
		n := copy(space[:min(len(space), max(1, piece()))], stream)
		d.Advance(n)
		stream = stream[n:]
	}
}

func TestDecoderTakesAnyPieces(t *testing.T) {
	var stream []byte
	sizes := []int{0, 1, 100, MaxPayload, 3, MaxPayload - 1, 4096}
	for i, n := range sizes {
		stream = AppendFrame(stream, frame(uint64(i), bytes.Repeat([]byte{byte(i)}, n)))
	}
	for _, size := range []int{1, 2, 3, 35, 36, 37, 4095, 1 << 20} {
		d := NewDecoder(MaxPayload)
		got := feed(d, stream, func() int { return size })
		if len(got) != len(sizes) || d.Lost != 0 {
			t.Fatalf("pieces of %d: %d frames, %d bytes lost", size, len(got), d.Lost)
		}
		for i, f := range got {
			if f.Seq != uint64(i) || len(f.Payload) != sizes[i] || f.Type != Stdout || f.ID != 7 || f.Flags != First|Last {
				t.Errorf("frame %d: %+v", i, f.Seq)
			}
		}
	}
}

// Whatever stands between frames, and however a frame is cut, the next whole one
// is found.
func TestDecoderFindsItsWayBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	whole := AppendFrame(nil, frame(1, bytes.Repeat([]byte("x"), 500)))
	for range 2000 {
		var stream []byte
		switch rnd.IntN(4) {
		case 0: // the end of a frame, its head read by another
			stream = append(stream, whole[rnd.IntN(len(whole)-1)+1:]...)
		case 1: // a damaged frame
			stream = append(stream, whole...)
			stream[rnd.IntN(len(stream))] ^= byte(1 + rnd.IntN(255))
		case 2: // noise with the magic in it
			for range rnd.IntN(50) {
				stream = append(stream, magic[:1+rnd.IntN(4)]...)
				stream = append(stream, byte(rnd.IntN(256)))
			}
		case 3: // a frame longer than is taken
			stream = append(stream, magic...)
			stream = append(stream, bytes.Repeat([]byte{0xff}, rnd.IntN(100))...)
		}
		stream = AppendFrame(stream, frame(42, []byte("found")))
		got := feed(NewDecoder(MaxPayload), stream, func() int { return rnd.IntN(300) })
		if len(got) == 0 || got[len(got)-1].Seq != 42 {
			t.Fatalf("%q gave %+v", stream, got)
		}
	}
}

// Nothing that stands in a payload is taken for a frame, be the payload whole or
// damaged.
func TestForgedFrameInside(t *testing.T) {
	forged := AppendFrame(nil, Frame{Type: Kill, ID: 1, Seq: 1})
	outer := AppendFrame(nil, frame(1, bytes.Repeat(forged, 20)))
	outer[len(outer)-1] ^= 1
	stream := AppendFrame(outer, frame(2, nil))
	got := feed(NewDecoder(MaxPayload), stream, func() int { return 1000 })
	if len(got) != 1 || got[0].Seq != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestSeek(t *testing.T) {
	stream := AppendFrame(nil, Frame{Type: Welcome, ID: 5})
	stream = AppendFrame(stream, frame(9, []byte("old output")))
	half := AppendFrame(nil, frame(10, bytes.Repeat(AppendFrame(nil, Frame{Type: Welcome, ID: 4}), 100)))
	stream = append(stream, half[:len(half)/2]...)
	stream = AppendFrame(stream, Frame{Type: Welcome, ID: 6, Seq: 8})
	stream = AppendFrame(stream, frame(9, nil))
	d := NewDecoder(MaxPayload)
	d.Seek(6)
	got := feed(d, stream, func() int { return 77 })
	if len(got) != 2 || got[0].Type != Welcome || got[0].Seq != 8 || got[1].Seq != 9 {
		t.Errorf("got %+v", got)
	}
}

// messages are one of each kind, all fields set.
var messages = []interface {
	Append([]byte) []byte
	Decode([]byte) bool
}{
	&HelloMessage{Min: 1, Max: 300},
	&WelcomeMessage{Protocol: 1, Version: "v", Warm: "python", Runs: []uint64{1, 1 << 63}},
	&WarmMessage{Command: command, Site: "/s", Preload: []string{"numpy"}},
	&RenewMessage{WarmMessage: WarmMessage{Command: command, Site: "/s", Preload: []string{"numpy"}}, Root: 1, Tmp: 2, Shm: 3, Inodes: 4},
	&AskMessage{Host: 1, Number: 2, Request: []byte("POST / HTTP/1.1\r\n\r\n")},
	&AnswerMessage{Number: 2, Response: []byte("HTTP/1.1 200 OK\r\n\r\n")},
	&RunMessage{Command: command, Warm: true, Timeout: 5, Output: 6, Files: []File{{Path: "/p", Mode: 0o644, Data: []byte("d\x00")}, {Path: "/q", Data: []byte{}}}},
	&KillMessage{Run: 1 << 40, Signal: 9},
	&ReseedMessage{Hostname: "h", MachineID: "0123"},
	&EnterMessage{Fill: true},
	&ProtectMessage{Folders: []string{"/data/a", ""}},
	&ReplyMessage{Error: "no"},
	&ExitMessage{Code: 137, Signal: 9, TimedOut: true, Warm: true, DiskFull: true, TasksFull: true, Stdout: 1 << 40, Stderr: 2, PeakRSS: 3, CPU: 4},
}

var command = Command{Language: "python", Path: "/usr/bin/python3", Argv: []string{"python3", ""}, Env: []string{"A=b"}, Dir: "/", Limits: Limits{Processes: 1, OpenFiles: 2}}

// TestOptionalFields: what older guests do not know stands at the end, and only if it is set.
func TestOptionalFields(t *testing.T) {
	for _, m := range []RunMessage{{Command: command, Port: 980}, {Command: command, Stdin: []byte("in")}, {Command: command, Stdin: []byte("in"), Port: 65535}} {
		var got RunMessage
		if p := m.Append(nil); !got.Decode(p) || !reflect.DeepEqual(got, m) || got.Decode(append(p, 0)) {
			t.Errorf("%+v came back as %+v", m, got)
		}
	}
	for name, tail := range map[string][]byte{"no stdin": {0}, "port 0": {0, 0}, "port 65536": {0, 0x80, 0x80, 4}} {
		if new(RunMessage).Decode(append((&RunMessage{Command: command}).Append(nil), tail...)) {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestMessagesSurvive(t *testing.T) {
	for _, m := range messages {
		p := m.Append(nil)
		got := reflect.New(reflect.TypeOf(m).Elem()).Interface().(interface{ Decode([]byte) bool })
		if !got.Decode(p) || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v came back as %+v", m, got)
		}
		for n := range p {
			if got.Decode(p[:n]) {
				t.Errorf("%T: %d of %d bytes were taken for all", m, n, len(p))
			}
		}
		if got.Decode(append(p, 0)) {
			t.Errorf("%T: a byte too many was taken", m)
		}
	}
}
