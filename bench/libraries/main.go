// Command libraries compares the rate at which each client library reads the output of a
// program that writes 100,000 lines, each by itself, with that of curl, which only passes it
// on.
//
//	go run ./bench/libraries
//
// It uses the server of ATOLL_BASE_URL and ATOLL_API_KEY, httpx for Python, and sdk/typescript
// as npm run build has written it. The four read by turns; medians are compared.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	atoll "github.com/atoll-run/atoll/sdk/go"
)

const (
	rounds = 9
	lines  = 100_000
)

var code = fmt.Sprintf("import sys\nfor n in range(%d): sys.stdout.write(f'line {n}\\n'); sys.stdout.flush()", lines)

// reader reads the program's output, and returns how many milliseconds that took and how many
// lines it had.
type reader struct {
	name string
	read func(ctx context.Context, url, key string) (ms float64, n int, err error)
}

var readers = []reader{
	{"curl", func(ctx context.Context, url, key string) (float64, int, error) {
		return program(ctx, nil, "sh", "-c", `curl -sSN "$1/v1/sandbox/execute" -H "Authorization: Bearer $2" -H "Content-Type: application/json" -H "Accept: application/x-ndjson" -d "$3" -o /dev/null -w "%{time_total} "; echo 0`,
			"sh", url, key, fmt.Sprintf(`{"code": %q}`, code))
	}},
	{"Go", ours},
	{"Python", func(ctx context.Context, url, key string) (float64, int, error) {
		return program(ctx, []string{"PYTHONPATH=sdk/python/src:" + os.Getenv("PYTHONPATH")}, "python3", "bench/libraries/lines.py", code)
	}},
	{"TypeScript", func(ctx context.Context, url, key string) (float64, int, error) {
		return program(ctx, []string{"ATOLL_URL=" + url}, "node", "bench/libraries/lines.mjs", code)
	}},
}

func main() {
	if err := compare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func compare(ctx context.Context) error {
	url, key := os.Getenv("ATOLL_BASE_URL"), os.Getenv("ATOLL_API_KEY")
	if url == "" || key == "" {
		return errors.New("set ATOLL_BASE_URL and ATOLL_API_KEY")
	}
	took := make([][]float64, len(readers))
	for range rounds {
		for i, r := range readers {
			ms, n, err := r.read(ctx, url, key)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if r.name == "curl" {
				ms *= 1000 // it counts seconds, and no lines
			} else if n != lines {
				return fmt.Errorf("%s had %d lines", r.name, n)
			}
			took[i] = append(took[i], ms)
		}
	}
	fmt.Printf("| reader | %d lines, ms | of curl's rate |\n| --- | --- | --- |\n", lines)
	for i, r := range readers {
		fmt.Printf("| %s | %.0f | %.0f %% |\n", r.name, median(took[i]), 100*median(took[0])/median(took[i]))
	}
	return nil
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// program runs a reader that prints what it has measured.
func program(ctx context.Context, env []string, name string, args ...string) (ms float64, n int, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		_, err = fmt.Sscan(string(out), &ms, &n)
	}
	return ms, n, err
}

// ours reads with the library for Go.
func ours(ctx context.Context, url, key string) (ms float64, n int, err error) {
	c := atoll.New(url, key)
	if _, err := c.Execute(ctx, atoll.ExecuteRequest{Code: "1"}); err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	for e, err := range c.StreamExecution(ctx, atoll.ExecuteRequest{Code: code}) {
		if err != nil {
			return 0, n, err
		}
		n += strings.Count(e.Data, "\n")
	}
	return float64(time.Since(begun).Microseconds()) / 1000, n, nil
}
