package execute_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// flood adds a program that writes lines of 1 KiB, as many MB as it is asked
// for, in batches as an executor makes them.
func flood(s *httpapitest.Server) {
	line := append(bytes.Repeat([]byte("x"), 1023), '\n')
	s.Executor.Program("flood", func(r *gatewaytest.Run) int {
		var megabytes int
		fmt.Sscan(r.Args, &megabytes)
		for range megabytes * 1000 / 63 {
			events := make([]execution.Event, 63)
			for i := range events {
				events[i] = execution.Event{Stream: execution.Stdout, Data: line}
			}
			r.Append(events...)
		}
		return 0
	})
}

// BenchmarkFlood is a program that writes lines as fast as its log takes them,
// with one client reading them as NDJSON over a real connection.
func BenchmarkFlood(b *testing.B) {
	const megabytes = 1000
	s := httpapitest.New(b)
	flood(s)
	srv := httptest.NewServer(s)
	defer srv.Close()
	var most uint64
	for b.Loop() {
		began := time.Now()
		res := httpapitest.Open(b, srv, "POST", "/v1/sandbox/execute", fmt.Sprintf(`{"code":"flood %d"}`, megabytes), "Accept", httpapi.NDJSON)
		got, buf := int64(0), make([]byte, 256<<10)
		for {
			n, err := res.Body.Read(buf)
			got += int64(n)
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			if got%(16<<20) < int64(n) {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
		}
		b.ReportMetric(float64(got)/1e6/time.Since(began).Seconds(), "MB/s")
		b.ReportMetric(float64(got)/1e6, "MB")
		b.ReportMetric(float64(most)/1e6, "MB-heap")
	}
}

// BenchmarkExecute is one request after another, recorded, through the bus to
// an executor that does nothing.
func BenchmarkExecute(b *testing.B) {
	s := httpapitest.New(b)
	for b.Loop() {
		if w := httpapitest.Post(s, `{"code":"x"}`); w.Code != http.StatusOK {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}

// BenchmarkExecuteParallel is the same from many clients.
func BenchmarkExecuteParallel(b *testing.B) {
	s := httpapitest.New(b)
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if w := httpapitest.Post(s, `{"code":"x"}`); w.Code != http.StatusOK {
				b.Errorf("%d %s", w.Code, strings.TrimSpace(w.Body.String()))
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}
