package wire

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzDecoder feeds a decoder anything, in pieces of any size. It must end, keep
// its memory, account for every byte and never lose a frame that follows.
func FuzzDecoder(f *testing.F) {
	whole := AppendFrame(nil, frame(1, []byte("payload")))
	f.Add(whole, uint8(1), false)
	f.Add(append(whole[5:len(whole):len(whole)], whole...), uint8(7), false)
	f.Add(append([]byte(magic+magic), whole...), uint8(255), true)
	f.Add(AppendFrame(nil, Frame{Type: Welcome, ID: 3, Payload: whole}), uint8(40), true)
	f.Fuzz(func(t *testing.T, data []byte, piece uint8, seek bool) {
		const most = 1024
		d := NewDecoder(most)
		if seek {
			d.Seek(3)
		}
		size := cap(d.buf)
		taken := 0
		for _, fr := range feed(d, data, func() int { return int(piece) }) {
			if len(fr.Payload) > most {
				t.Fatalf("a payload of %d bytes", len(fr.Payload))
			}
			taken += HeaderSize + len(fr.Payload)
		}
		if cap(d.buf) != size || taken+int(d.Lost)+d.w-d.r != len(data) {
			t.Fatalf("%d bytes: %d in frames, %d lost, %d kept", len(data), taken, d.Lost, d.w-d.r)
		}
		// A frame the decoder waits for the rest of ends with enough of nothing.
		rest := AppendFrame(make([]byte, most+HeaderSize), Frame{Type: Welcome, ID: 3, Seq: 99})
		got := feed(d, rest, func() int { return 500 })
		if len(got) == 0 || got[len(got)-1].Seq != 99 {
			t.Fatalf("after %q the next frame was lost", data)
		}
	})
}

// FuzzMessages decodes anything as each kind of message. What is taken must
// survive being written and read again.
func FuzzMessages(f *testing.F) {
	for i, m := range messages {
		f.Add(uint8(i), m.Append(nil))
	}
	f.Add(uint8(1), []byte("\x01\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		typ := reflect.TypeOf(messages[int(kind)%len(messages)]).Elem()
		type message interface {
			Append([]byte) []byte
			Decode([]byte) bool
		}
		m := reflect.New(typ).Interface().(message)
		if !m.Decode(data) {
			return
		}
		again := reflect.New(typ).Interface().(message)
		p := m.Append(nil)
		if !again.Decode(p) || !bytes.Equal(again.Append(nil), p) {
			t.Fatalf("%+v came back as %+v", m, again)
		}
	})
}
