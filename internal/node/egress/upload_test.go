package egress

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestEarlyAnswer has a server answer when it has read the beginning of a
// request, and the client send the rest of it meanwhile.
func TestEarlyAnswer(t *testing.T) {
	const size, read, answer = 200 << 10, 1 << 10, 3 << 20
	began := make(chan struct{})
	s := serveHTTP(t, good+":80", func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.EnableFullDuplex()
		_, _ = io.ReadFull(r.Body, make([]byte, read))
		_, _ = w.Write(make([]byte, answer/2))
		_ = c.Flush()
		began <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, answer/2))
	})
	s.Start()
	for _, length := range []int64{size, -1} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			r := newRig(t, Config{}, hosts("good.test"))
			r.zone.set("good.test", good)
			begin, end := strings.NewReader(strings.Repeat("a", read)), bytes.NewReader(make([]byte, size-read))
			body := io.MultiReader(begin, readerFunc(func([]byte) (int, error) { <-began; return 0, io.EOF }), end)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://good.test/", body)
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			a, err := r.client(t, &http.Transport{}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			if n, err := io.Copy(io.Discard, a.Body); n != answer || err != nil {
				t.Errorf("got %d bytes, %v, instead of %d", n, err, answer)
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
