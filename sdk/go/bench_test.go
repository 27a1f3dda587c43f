package atoll

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

const benchAnswer = `{"success":true,"stdout":"1\n","stderr":"","exit_code":0,"error":null,"stdout_truncated":false,"stderr_truncated":false,"start":"warm"}`

// benchLines is a stream of so many lines of output.
const benchLines = 100_000

func benchServer(b *testing.B) string {
	b.Helper()
	var stream bytes.Buffer
	for i := range benchLines {
		fmt.Fprintf(&stream, `{"type":"output","stream":"stdout","data":"line %d\n","seq":%d}`+"\n", i, i+1)
	}
	fmt.Fprintf(&stream, `{"type":"result","status":"success","seq":%d}`+"\n", benchLines+1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("Accept") == mediaNDJSON {
			w.Header().Set("Content-Type", mediaNDJSON)
			_, _ = w.Write(stream.Bytes())
			return
		}
		w.Header().Set("Content-Type", mediaJSON)
		_, _ = io.WriteString(w, benchAnswer)
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// BenchmarkExecute is a call by the library, to be compared with BenchmarkBare.
func BenchmarkExecute(b *testing.B) {
	c := New(benchServer(b), "k")
	for b.Loop() {
		if out, err := c.Execute(b.Context(), ExecuteRequest{Code: "print(1)"}); err != nil || out.Stdout != "1\n" {
			b.Fatal(out, err)
		}
	}
}

// BenchmarkBare is the same call by net/http.
func BenchmarkBare(b *testing.B) {
	url := benchServer(b) + executePath
	for b.Loop() {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader([]byte(`{"code":"print(1)"}`)))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer k")
		r.Header.Set("Content-Type", mediaJSON)
		res, err := shared.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		var out struct{ Stdout string }
		err = json.NewDecoder(res.Body).Decode(&out)
		_ = res.Body.Close()
		if err != nil || out.Stdout != "1\n" {
			b.Fatal(out, err)
		}
	}
}

// BenchmarkStream reads benchLines lines as events.
func BenchmarkStream(b *testing.B) {
	c := New(benchServer(b), "k")
	for b.Loop() {
		n := 0
		for _, err := range c.StreamExecution(b.Context(), ExecuteRequest{Code: "x"}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != benchLines+1 {
			b.Fatal(n)
		}
	}
}
