package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/config"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) demoCommand() *cobra.Command {
	var s *settings
	cmd := &cobra.Command{
		Use:   "demo FILE.py",
		Short: "Start the server, run a program through it, and stay up",
		Long: `Start the server like 'atoll serve', after building the default image if it is
missing. Then run a Python program through its HTTP API, compare its time with
the bare interpreter's, and keep serving until Ctrl-C.

Exit codes: those of serve.`,
		Example: `  atoll demo examples/hello.py`,
		Args:    cobra.ExactArgs(1),
		RunE: failing(func(ctx context.Context, _ *cobra.Command, args []string) error {
			cfg, log, err := a.load(s)
			if err != nil {
				return err
			}
			if cfg.Role != config.RoleAll {
				return &exit{exitUsage, fmt.Errorf("role: demo runs its program on this machine, so it needs the role %s", config.RoleAll)}
			}
			code, err := a.readProgram(args[0])
			if err != nil {
				return err
			}
			if err := a.ensureImage(ctx, cfg, log); err != nil {
				return err
			}
			return a.serve(ctx, cfg, log, func(ctx context.Context, e endpoint) error {
				return a.demo(ctx, cfg, e, args[0], code)
			})
		}),
	}
	s = addSettings(cmd, "Server", "Executions", "Environment")
	s.starts = true
	a.makesSandboxes(cmd, s, nil)
	return cmd
}

// The demo's program runs this often; between runs the pool refills, as it
// would for a client that is not in a hurry.
const (
	demoRuns  = 5
	demoPause = 500 * time.Millisecond
)

// demo runs a program through a server and prints what a visitor wants to see.
func (a *cli) demo(ctx context.Context, cfg *config.Config, e endpoint, file, code string) error {
	client := sdk.New(e.url, e.key)
	var last sdk.ExecuteResponse
	sandboxed, err := median(ctx, func() (err error) {
		last, err = client.Execute(ctx, sdk.ExecuteRequest{Code: code})
		return err
	})
	if err != nil {
		return fmt.Errorf("run %s: %w", file, err)
	}
	w := a.std.out
	fmt.Fprintf(w, "\n%s, run in a sandbox through POST /v1/sandbox/execute (exit code %d):\n\n%s", file, last.ExitCode, indent(last.Stdout+last.Stderr))
	if last.Error != nil {
		fmt.Fprintf(w, "    %s\n", *last.Error)
	}
	fmt.Fprintf(w, "\nTime, median of %d:\n    %-34s %6.1f ms\n", demoRuns, "in a fresh sandbox, over HTTP", ms(sandboxed))

	if bare, label, err := a.bareTime(ctx, cfg, code); err != nil {
		fmt.Fprintf(w, "    the bare interpreter could not be timed: %v\n", err)
	} else {
		fmt.Fprintf(w, "    %-34s %6.1f ms\n", label, ms(bare))
	}
	_, err = fmt.Fprintf(w, `
Your turn:

curl -s %s/v1/sandbox/execute -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"code": "print(sum(range(101)))"}'

Next: %s/help/tutorials/first-hour
API reference: %s/docs

%s
`, e.url, e.key, e.url, e.url, ending(cfg))
	return err
}

// ending says what Ctrl-C ends, and how to keep it.
func ending(cfg *config.Config) string {
	if cfg.OnExit == "destroy" {
		return `Ctrl-C stops the server and deletes every sandbox with its processes and files.
Keys, records, threads, snapshots and images stay in ` + cfg.DataDir + `.
To keep a sandbox: 'atoll sandbox snapshot NAME', or start with 'atoll serve --data-dir ` + cfg.DataDir + `',
which leaves sandboxes running for the next server.`
	}
	return `Ctrl-C stops the server. Named sandboxes and programs that run stay for the next server on ` + cfg.DataDir + `;
'--on-exit destroy' would delete them.`
}

// median calls f demoRuns times and returns its median duration.
func median(ctx context.Context, f func() error) (time.Duration, error) {
	var took []time.Duration
	for range demoRuns {
		started := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(started))
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(demoPause):
		}
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// writeTemp puts code into a file in a folder of its own.
func writeTemp(code string) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "atoll-demo-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // in the system's temporary folder, which is swept
	path = filepath.Join(dir, "main.py")
	if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + line)
	}
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	return b.String()
}
