package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/redact"
)

// BenchmarkWrite measures what covering costs: of text as programs print it, in
// writes of 64 KiB and of a line.
func BenchmarkWrite(b *testing.B) {
	prose := strings.Repeat("It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife.\n", 600)
	var log strings.Builder
	for i := range 900 {
		fmt.Fprintf(&log, "2026-01-02T03:04:05.%06dZ INFO  request served method=GET path=/v1/things/%d status=200 bytes=%d\n", i*1313%1000000, i*7919, i*31)
	}
	tokens := strings.Repeat("export GITHUB_TOKEN=ghp_"+long(36)+" and some text after it, as there usually is\n", 700)
	secrets := make([]string, 20)
	for i := range secrets {
		secrets[i] = fmt.Sprintf("%d-%s", i, long(40))
	}
	for _, c := range []struct {
		name, text string
		secrets    []string
	}{
		{"prose", prose, nil}, {"log", log.String(), nil}, {"numbers", strings.Repeat("0.123456, 17.25, -3.5e-7, ", 3000), nil},
		{"base64", strings.Repeat(long(76)+"\n", 900), nil}, {"one letter", strings.Repeat("a", 64<<10), nil}, {"dashes", strings.Repeat("-", 64<<10), nil},
		{"tokens", tokens, nil}, {"prose with 20 secrets", prose, secrets}, {"log with 20 secrets", log.String(), secrets},
	} {
		s := set(b, redact.Config{Secrets: c.secrets})
		for _, size := range []int{64 << 10, 100} {
			b.Run(fmt.Sprintf("%s/%d", c.name, size), func(b *testing.B) {
				st := s.Stream(func([]byte) {})
				text := []byte(c.text[:64<<10-1])
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					for rest := text; len(rest) > 0; {
						n := min(size, len(rest))
						st.Write(rest[:n])
						rest = rest[n:]
					}
				}
			})
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{0, 1, 5, 20} {
		secrets := make([]string, n)
		for i := range secrets {
			secrets[i] = fmt.Sprintf("%d-%s", i, long(40))
		}
		b.Run(fmt.Sprintf("%d secrets", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set(b, redact.Config{Secrets: secrets})
			}
		})
	}
	b.Run("stream", func(b *testing.B) {
		s := set(b, redact.Config{})
		b.ReportAllocs()
		for b.Loop() {
			s.Pair(nil, nil)
		}
	})
}
