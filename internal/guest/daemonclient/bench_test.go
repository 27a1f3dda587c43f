package daemonclient_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
)

// median runs f as often as the benchmark says and reports its median.
func median(b *testing.B, f func()) time.Duration {
	b.Helper()
	var all []time.Duration
	f()
	for b.Loop() {
		start := time.Now()
		f()
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*95/100].Microseconds()), "p95-µs")
	return all[len(all)/2]
}

func BenchmarkShellTrue(b *testing.B) {
	c := clienttest.New(b).Dial(b)
	for name, spec := range map[string]process.Spec{
		"Shell": shell("true"),
		"sh":    {Argv: []string{"/bin/sh", "-c", "true"}, Env: clienttest.Env, Lossless: true},
		"true":  {Argv: []string{"/bin/true"}, Env: clienttest.Env, Lossless: true},
	} {
		b.Run(name, func(b *testing.B) {
			median(b, func() {
				o, err := c.Run(b.Context(), spec)
				if err != nil {
					b.Fatal(err)
				}
				all(b, o)
			})
		})
	}
	b.Run("bare", func(b *testing.B) {
		median(b, func() {
			if err := exec.Command("sh", "-c", "true").Run(); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("inside", func(b *testing.B) { // what the sandbox itself takes for it
		const n = 200
		start := time.Now()
		o, err := c.Run(b.Context(), shell("for i in $(seq "+strconv.Itoa(n)+"); do sh -c true; done"))
		if err != nil {
			b.Fatal(err)
		}
		all(b, o)
		b.ReportMetric(float64(time.Since(start).Microseconds())/n, "µs-each")
	})
}

func BenchmarkRead4K(b *testing.B) {
	c := clienttest.New(b).Dial(b)
	if _, err := c.Create(b.Context(), "f", file.CreateOptions{}, bytes.NewReader(make([]byte, 4096))); err != nil {
		b.Fatal(err)
	}
	median(b, func() {
		_, r, err := c.Read(b.Context(), "f", 0, -1)
		if err != nil {
			b.Fatal(err)
		}
		if data, err := io.ReadAll(r); err != nil || len(data) != 4096 {
			b.Fatal(len(data), err)
		}
	})
}

func BenchmarkStat(b *testing.B) {
	c := clienttest.New(b).Dial(b)
	median(b, func() {
		if _, err := c.Stat(b.Context(), "/home/user"); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkWrite4K(b *testing.B) {
	c := clienttest.New(b).Dial(b)
	data := make([]byte, 4096)
	median(b, func() {
		if _, err := c.Create(b.Context(), "f", file.CreateOptions{}, bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

const bulk = 256 << 20

func BenchmarkBulk(b *testing.B) {
	s := clienttest.New(b)
	c := s.Dial(b)
	b.Run("create", func(b *testing.B) {
		b.SetBytes(bulk)
		for b.Loop() {
			if n, err := c.Create(b.Context(), "big", file.CreateOptions{}, io.LimitReader(zeros{}, bulk)); err != nil || n != bulk {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(bulk)
		for b.Loop() {
			_, r, err := c.Read(b.Context(), "big", 0, -1)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, r); err != nil || n != bulk {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("transfer", func(b *testing.B) {
		other := clienttest.New(b).Dial(b)
		b.SetBytes(bulk)
		for b.Loop() {
			transfer(b, c, "big", other, "there")
		}
	})
	b.Run("small", func(b *testing.B) {
		run(b, c, "mkdir -p tree && cd tree && for i in $(seq 100); do mkdir $i; for j in $(seq 100); do echo $i $j > $i/$j; done; done")
		other := clienttest.New(b).Dial(b)
		dir := b.TempDir()
		var copied, moved time.Duration
		n := 0
		for b.Loop() {
			start := time.Now()
			if out, err := exec.Command("cp", "-r", filepath.Join(s.Home, "tree"), filepath.Join(dir, strconv.Itoa(n))).CombinedOutput(); err != nil {
				b.Fatal(err, string(out))
			}
			copied += time.Since(start)
			start = time.Now()
			transfer(b, c, "tree", other, "tree"+strconv.Itoa(n))
			moved += time.Since(start)
			n++
			os.RemoveAll(filepath.Join(dir, "*"))
		}
		b.ReportMetric(copied.Seconds()*1e3/float64(n), "cp-ms")
		b.ReportMetric(moved.Seconds()*1e3/float64(n), "transfer-ms")
	})
}

func transfer(t testing.TB, from *daemonclient.Client, path string, to *daemonclient.Client, as string) file.Counts {
	t.Helper()
	a, err := from.Pack(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	n, err := to.Unpack(t.Context(), as, a)
	if err != nil {
		t.Fatal(err)
	}
	if sent := a.Counts(); sent != n {
		t.Fatalf("packed %+v and unpacked %+v", sent, n)
	}
	return n
}
