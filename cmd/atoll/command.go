package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/config"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// Files in data_dir that have the first admin key, and the development key.
const (
	adminKeyFile = "admin-key"
	devKeyFile   = "dev-key"
)

// adminCommands are the commands that talk to a server's API.
func (a *cli) adminCommands() []*cobra.Command {
	return []*cobra.Command{
		a.tenantCommand(), a.envCommand(), a.keyCommand(), a.planCommand(), a.templateCommand(), a.connectionCommand(),
		a.capsCommand(), a.auditCommand(), a.usageCommand(), a.webhookCommand(), a.executionCommand(), a.threadCommand(), a.sandboxCommand(), a.snapshotCommand(),
	}
}

// remote are the flags of a command that talks to a server.
type remote struct {
	app     *cli
	baseURL string
	keyFile string
	dataDir string
	config  string
	json    bool
	local   string // the file in data_dir that has the key where nothing else says one
}

const remoteHelp = `

The server is --base-url or ATOLL_BASE_URL, else this machine's, where its
settings say (--config, ATOLL_LISTEN, …). The key is that of --key-file or
ATOLL_API_KEY; for this machine's server it is else that of the file %s
in its data folder.

Exit codes: 0 done, 1 not done, 2 a wrong command line.`

// remoteGroup returns a command whose subcommands talk to a server.
func (a *cli) remoteGroup(use, short, long, example, local string) (*cobra.Command, *remote) {
	r := &remote{app: a, local: local}
	cmd := group(&cobra.Command{Use: use, Short: short, Long: long + fmt.Sprintf(remoteHelp, local), Example: example})
	flags := cmd.PersistentFlags()
	flags.StringVar(&r.baseURL, "base-url", "", "URL of the server (ATOLL_BASE_URL)")
	flags.StringVar(&r.keyFile, "key-file", "", "file with the API key, - for stdin (ATOLL_API_KEY)")
	flags.StringVar(&r.dataDir, "data-dir", "", "data folder of this machine's server (ATOLL_DATA_DIR)")
	flags.StringVar(&r.config, "config", "", "configuration file of this machine's server ("+config.FileEnv+")")
	flags.BoolVar(&r.json, "json", false, "print JSON")
	return cmd, r
}

// client returns a client of the server that the flags and the environment
// name.
func (r *remote) client() (*sdk.Client, error) {
	base, key := r.baseURL, r.app.getenv("ATOLL_API_KEY")
	if base == "" {
		base = r.app.getenv("ATOLL_BASE_URL")
	}
	if r.keyFile != "" {
		text, err := r.app.readSmall(r.keyFile)
		if err != nil {
			return nil, err
		}
		key = text
	}
	if base != "" && !strings.HasPrefix(base, "http://") && !strings.HasPrefix(base, "https://") {
		return nil, wrong("the server's URL must begin with http:// or https://, not %q", base)
	}
	if base != "" && key != "" {
		return sdk.New(base, key), nil
	}
	if base != "" && r.dataDir == "" { // the key of this machine is nothing for another
		return nil, fmt.Errorf("give the key for %s with --key-file or ATOLL_API_KEY", base)
	}
	sources := config.Sources{File: r.config, Getenv: r.app.getenv, Flags: map[string]string{}}
	if r.dataDir != "" {
		sources.Flags["data-dir"] = r.dataDir
	}
	cfg, err := config.Load(sources)
	if err != nil {
		return nil, &exit{exitUsage, err}
	}
	if base == "" {
		base = localURL(cfg)
	}
	if key == "" && r.local == devKeyFile {
		key = cfg.DevKey
	}
	if key == "" {
		if key, err = r.app.readSmall(filepath.Join(cfg.DataDir, r.local)); err != nil {
			return nil, fmt.Errorf("no key: give one with --key-file or ATOLL_API_KEY (%w)", err)
		}
	}
	return sdk.New(base, key), nil
}

// localURL is where this machine's server can be reached.
func localURL(cfg *config.Config) string {
	scheme, address := "http", cfg.Listen
	if cfg.TLSCert != "" {
		scheme = "https"
	}
	if host, port, err := net.SplitHostPort(address); err == nil {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			address = net.JoinHostPort("localhost", port)
		}
	}
	return scheme + "://" + address
}

// readSmall reads a file that holds one short text, such as a key; - is stdin.
func (a *cli) readSmall(path string) (string, error) {
	in := a.std.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, 64<<10))
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(raw), "\r\n")
	if text == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return text, nil
}

// command returns a subcommand that calls the server.
func (r *remote) command(use, short, example string, args cobra.PositionalArgs, run func(ctx context.Context, c *sdk.Client, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: func(cmd *cobra.Command, given []string) error {
			if args(cmd, given) != nil {
				return fmt.Errorf("want %s", cmd.UseLine())
			}
			return nil
		},
		RunE: failing(func(ctx context.Context, _ *cobra.Command, args []string) error {
			c, err := r.client()
			if err != nil {
				return err
			}
			err = run(ctx, c, args)
			if n, ok := errors.AsType[*net.OpError](err); ok && n.Op == "dial" {
				return fmt.Errorf("%w; start it with 'atoll serve', or say with --base-url where it is", err)
			}
			return err
		}),
	}
}

// doing is what a subcommand does.
type doing = func(ctx context.Context, c *sdk.Client, args []string) error

// one and two make a call that needs one argument, or two, a call that takes
// them from the command line.
func one[T any](call func(*sdk.Client, context.Context, string) (T, error)) func(context.Context, *sdk.Client, []string) (T, error) {
	return func(ctx context.Context, c *sdk.Client, args []string) (T, error) { return call(c, ctx, args[0]) }
}

func two[T any](call func(*sdk.Client, context.Context, string, string) (T, error)) func(context.Context, *sdk.Client, []string) (T, error) {
	return func(ctx context.Context, c *sdk.Client, args []string) (T, error) {
		return call(c, ctx, args[0], args[1])
	}
}

// shows calls, and shows what it got.
func shows[T any](call func(context.Context, *sdk.Client, []string) (T, error), show func(T) error) doing {
	return func(ctx context.Context, c *sdk.Client, args []string) error {
		got, err := call(ctx, c, args)
		if err != nil {
			return err
		}
		return show(got)
	}
}

// removes calls, and confirms what the last argument names.
func (r *remote) removes(call doing) doing {
	return func(ctx context.Context, c *sdk.Client, args []string) error {
		if err := call(ctx, c, args); err != nil {
			return err
		}
		return r.said("removed %s", args[len(args)-1])
	}
}

// listing shows a list: its head, and a row for each item.
func listing[T any](r *remote, head []any, cells func(T) []any) func([]T) error {
	return func(all []T) error {
		return r.print(all, func(w io.Writer) {
			row(w, head...)
			for _, v := range all {
				row(w, cells(v)...)
			}
		})
	}
}

// ifGiven is value if the flag is on the command line, otherwise nil: what is not
// given stays.
func ifGiven[T any](cmd *cobra.Command, flag string, value *T) *T {
	if cmd.Flags().Changed(flag) {
		return value
	}
	return nil
}

// wrong is what is wrong with a command line.
func wrong(format string, args ...any) error { return &exit{exitUsage, fmt.Errorf(format, args...)} }

// print shows what a call returned: as JSON, or as text does it.
func (r *remote) print(v any, text func(w io.Writer)) error {
	if r.json {
		out := json.NewEncoder(r.app.std.out)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(v)
	}
	w := tabwriter.NewWriter(r.app.std.out, 0, 0, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// said confirms what was done where there is nothing to show.
func (r *remote) said(format string, args ...any) error {
	if r.json {
		return nil
	}
	_, err := fmt.Fprintf(r.app.std.out, format+"\n", args...)
	return err
}

// row writes the cells of a table's row; empty ones show as a dash. What comes
// from callers cannot move the cursor or the columns.
func row(w io.Writer, cells ...any) {
	for i, cell := range cells {
		text := strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 {
				return ' '
			}
			return c
		}, fmt.Sprint(cell))
		if text == "" {
			text = "-"
		}
		if i > 0 {
			_, _ = io.WriteString(w, "\t") // the flush tells
		}
		_, _ = io.WriteString(w, text)
	}
	_, _ = io.WriteString(w, "\n")
}

func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func whenOr(t *time.Time, otherwise string) string {
	if t == nil {
		return otherwise
	}
	return when(*t)
}

// pairs parses NAME=VALUE arguments.
func pairs(flag string, args []string) (map[string]string, error) {
	out := map[string]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, wrong("--%s %s: want NAME=VALUE", flag, arg)
		}
		out[name] = value
	}
	return out, nil
}

// moment reads a time: a date, RFC 3339, or how long ago it was, such as 24h.
func moment(flag, text string) (string, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(-d).UTC().Format(time.RFC3339), nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t.Format(time.RFC3339), nil
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return "", wrong("--%s %s: want a date, a time such as 2026-01-31T12:00:00Z, or how long ago, such as 24h", flag, text)
	}
	return text, nil
}

var errNothing = wrong("nothing to change: give at least one flag")
