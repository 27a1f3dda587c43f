package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/edge/mcp/bridge"
)

// mcpFlags are what 'atoll mcp' adds to the settings.
type mcpFlags struct {
	baseURL, session, agent, template string
}

func (a *cli) mcpCommand() *cobra.Command {
	var s *settings
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer sandboxes to an MCP client on stdin and stdout",
		Long: `Offer sandboxes as tools to the program that started this command, by the Model
Context Protocol on stdin and stdout, until stdin ends.

With a server (--base-url or ATOLL_BASE_URL, key in ATOLL_API_KEY) the sandboxes
are there; without one they are made here, and end with this command. Those of a
session that --session names stay on their server, others end too.

Exit codes: 0 when stdin ended, 1 when there are no sandboxes to offer, 2 when
the settings are wrong.`,
		Example: `  atoll mcp
  ATOLL_BASE_URL=http://127.0.0.1:8080 ATOLL_API_KEY=sk-atoll-… atoll mcp --session notes`,
		Args: cobra.NoArgs,
		RunE: failing(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			if f.baseURL = a.serverURL(f.baseURL); f.baseURL == "" {
				return a.mcpHere(ctx, f, s)
			}
			key := a.getenv("ATOLL_API_KEY")
			if key == "" {
				return errors.New("ATOLL_API_KEY is not set: it is the key for the server at " + f.baseURL)
			}
			a.runDefaults(s)
			_, log, err := a.load(s)
			if err != nil {
				return err
			}
			return a.bridge(ctx, log, f, key)
		}),
	}
	s = addSettings(cmd)
	a.makesSandboxes(cmd, s, func() bool {
		a.runDefaults(s)
		return a.serverURL(f.baseURL) != ""
	})
	flags := cmd.Flags()
	flags.StringVar(&f.baseURL, "base-url", "", "server to have the sandboxes on (ATOLL_BASE_URL)")
	flags.StringVar(&f.session, "session", "", "session whose sandboxes to use, made with its first use (one of this command's own)")
	flags.StringVar(&f.agent, "agent", "", "which agent calls execute_code (the key's name)")
	flags.StringVar(&f.template, "template", "", "template of execute_code (default)")
	return cmd
}

// bridge joins stdin and stdout with the server of f.
func (a *cli) bridge(ctx context.Context, log *slog.Logger, f mcpFlags, key string) error {
	q := url.Values{}
	for name, value := range map[string]string{"session": f.session, "agent": f.agent, "template": f.template} {
		if value != "" {
			q.Set(name, value)
		}
	}
	endpoint := bridge.Endpoint(f.baseURL)
	if len(q) > 0 {
		endpoint += "?" + q.Encode()
	}
	return bridge.Run(ctx, bridge.Config{
		Endpoint: endpoint, Key: key, Version: version(), In: io.NopCloser(a.std.in), Out: unclosed{a.std.out}, Log: log,
	})
}

// unclosed is a writer that somebody else closes.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// mcpHere joins stdin and stdout with a server of this process.
func (a *cli) mcpHere(ctx context.Context, f mcpFlags, s *settings) (err error) {
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
	srv, err := a.openServer(ctx, own.cfg, own.images, own.platform, own.key, log)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(serving, ln) }()
	f.baseURL = "http://" + ln.Addr().String()
	bridged := whenReady(serving, srv.Ready, func() error { return a.bridge(serving, log, f, own.key) })
	stop()
	if err := <-served; err != nil {
		return errors.Join(bridged, fmt.Errorf("end the sandboxes: %w", err))
	}
	return bridged
}
