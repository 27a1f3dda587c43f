package contexts

import (
	"bytes"
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/core/redact"
)

// FuzzDecoder gives the decoder what a hostile program could write, in pieces of
// every size: it takes it or says that it is none of ours, and the pieces make no
// difference.
func FuzzDecoder(f *testing.F) {
	covers, err := redact.New(redact.Config{Secrets: []string{"hunter2-secret"}})
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range []string{
		`{"id":1,"type":"done","status":"ok","exit_code":0}` + "\n",
		`{"id":1,"type":"display","data":{"text/plain":"x","application/json":[1,{"a":1e999}]},"metadata":{}}` + "\n",
		`{"id":1,"type":"error","name":"E","value":"v","traceback":["a","b"]}` + "\n{}\n",
		`{"id":1,"type":"result","data":{"text/plain":5}}` + "\n", "\n\n", "{", "\x00\xff\n",
	} {
		f.Add([]byte(line), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		decode := func(size int) (n int, err error) {
			var d decoder
			for rest := data; len(rest) > 0; {
				piece := rest[:min(size, len(rest))]
				rest = rest[len(piece):]
				err = d.write(piece, func(m *message) error {
					n++
					for _, value := range m.Data {
						if covered := redactJSON(covers, value); !covered.IsValid() || bytes.Contains(covered, []byte("hunter2-secret")) {
							t.Fatalf("%q becomes %q", value, covered)
						}
					}
					return nil
				})
				if err != nil {
					return n, err
				}
			}
			return n, nil
		}
		if size < 1 || size > 1<<20 {
			size = 1
		}
		whole, err := decode(len(data) + 1)
		if err != nil && !errors.Is(err, errProtocol) {
			t.Fatal(err)
		}
		if parts, other := decode(size); parts != whole || (err == nil) != (other == nil) {
			t.Fatalf("%d messages and %v at once, %d and %v in pieces of %d", whole, err, parts, other, size)
		}
	})
}
