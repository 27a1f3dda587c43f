package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/infra/mcpbridge"
)

// mcpFlags are what 'atoll mcp' adds to the settings.
type mcpFlags struct {
	session, agent, template string
	target                   target
	in                       *observed // stdin
}

func (a *cli) mcpCommand() *cobra.Command {
	var s *settings
	f := mcpFlags{target: target{app: a, local: devKeyFile}, in: &observed{Reader: a.std.in}}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer sandboxes to an MCP client on stdin and stdout",
		Long: `Offer sandboxes as tools to the program that started this command, over the Model
Context Protocol on stdin and stdout, until stdin ends.

With a server (--base-url or ATOLL_BASE_URL, key in ATOLL_API_KEY or --key-file)
the sandboxes run there; without one they run here, and end with this command.
Sandboxes of a session that --session names stay on their server; others end.

If the command cannot start, it reports why in the answer to the client's first
request and on stderr. Exit codes: 0 when stdin ended, 1 when there are no sandboxes to offer, 2
when the settings are wrong.`,
		Example: `  atoll mcp
  ATOLL_BASE_URL=http://127.0.0.1:8080 ATOLL_API_KEY=sk-atoll-… atoll mcp --session notes`,
		Args: cobra.NoArgs,
		RunE: failing(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			if f.target.given() == "" {
				return a.mcpHere(ctx, &f, s)
			}
			server, err := f.target.find()
			if err != nil {
				return err
			}
			a.runDefaults(s)
			_, log, err := a.load(s)
			if err != nil {
				return err
			}
			return f.target.explain(a.bridge(ctx, log, &f, server))
		}),
	}
	s = addSettings(cmd)
	a.makesSandboxes(cmd, s, func() bool {
		a.runDefaults(s)
		return f.target.given() != ""
	})
	cmd.PreRunE, cmd.RunE = a.tellsClient(&f, cmd.PreRunE), a.tellsClient(&f, cmd.RunE)
	flags := cmd.Flags()
	f.target.addServerFlags(flags)
	flags.StringVar(&f.session, "session", "", "session whose sandboxes to use, created on first use (a new one)")
	flags.StringVar(&f.agent, "agent", "", "name of the agent that calls execute_code (the key's name)")
	flags.StringVar(&f.template, "template", "", "template of execute_code (default)")
	return cmd
}

// tellsClient has the client that started this command told of an error that comes
// before it was listened to, such as a missing key: the client shows no more than
// that the command ended.
func (a *cli) tellsClient(f *mcpFlags, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if e, ok := errors.AsType[*exit](err); err == nil || ok && e.err == nil || f.in.used.Load() || cmd.Context().Err() != nil {
			return err
		}
		if file, ok := f.in.Reader.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			return err // a person reads stderr
		}
		return errors.Join(err, mcpbridge.Refuse(cmd.Context(), f.in, a.std.out, fmt.Errorf("atoll mcp: %w", err)))
	}
}

// observed knows whether anything was read of it.
type observed struct {
	io.Reader
	used atomic.Bool
}

func (o *observed) Read(p []byte) (int, error) {
	o.used.Store(true)
	return o.Reader.Read(p)
}

// bridge joins stdin and stdout with the server of f.
func (a *cli) bridge(ctx context.Context, log *slog.Logger, f *mcpFlags, server endpoint) error {
	q := url.Values{}
	for name, value := range map[string]string{"session": f.session, "agent": f.agent, "template": f.template} {
		if value != "" {
			q.Set(name, value)
		}
	}
	endpoint := mcpbridge.Endpoint(server.url)
	if len(q) > 0 {
		endpoint += "?" + q.Encode()
	}
	return mcpbridge.Run(ctx, mcpbridge.Config{
		Endpoint: endpoint, Key: server.key, Version: version(), In: io.NopCloser(f.in), Out: unclosed{a.std.out}, Log: log,
	})
}

// unclosed is a writer that its owner closes.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// mcpHere joins stdin and stdout with a server of this process.
func (a *cli) mcpHere(ctx context.Context, f *mcpFlags, s *settings) (err error) {
	a.runDefaults(s)
	cfg, log, err := a.load(s)
	if err != nil {
		return err
	}
	own, err := openPrivate(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.remove()) }()
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer ln.Close()                    // Serve has closed it already, unless it was never reached
	own.cfg.Listen = ln.Addr().String() // which previews lead to
	srv, err := a.openServer(ctx, own.cfg, own.images, own.platform, own.key, nil, log)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(serving, ln) }()
	bridged := whenReady(serving, srv.Ready, func() error { return a.bridge(serving, log, f, endpoint{"http://" + ln.Addr().String(), own.key}) })
	stop()
	if err := <-served; err != nil {
		return errors.Join(bridged, fmt.Errorf("end the sandboxes: %w", err))
	}
	return bridged
}
