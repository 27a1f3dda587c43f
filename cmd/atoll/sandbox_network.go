package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (s *sandboxes) ports() *cobra.Command {
	return s.command("ports NAME", "List the open ports of a sandbox", "", cobra.ExactArgs(1), shows(
		func(ctx context.Context, c *sdk.Client, args []string) ([]sdk.SandboxPort, error) {
			return c.SandboxPorts(ctx, s.at(args[0]))
		}, listing(&s.printer, []any{"PORT", "ADDRESS"}, func(p sdk.SandboxPort) []any { return []any{p.Port, p.Address} })))
}

func (s *sandboxes) preview() *cobra.Command {
	var end bool
	cmd := s.command("preview NAME [PORT]", "Create a URL for a port of a sandbox, or list these URLs", `  atoll sandbox preview builder 3000
  atoll sandbox preview builder
  atoll sandbox preview --close builder 3000`, cobra.RangeArgs(1, 2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			switch {
			case len(args) == 1 && end:
				return wrong("--close needs the port")
			case len(args) == 1:
				all, err := c.Previews(ctx, s.at(args[0]))
				if err != nil {
					return err
				}
				return listing(&s.printer, []any{"PORT", "URL", "CREATED"}, func(p sdk.Preview) []any {
					return []any{p.Port, p.URL, when(p.CreatedAt)}
				})(all)
			case end:
				if err := c.ClosePreview(ctx, s.at(args[0]), args[1]); err != nil {
					return err
				}
				return s.say("closed %s", args[1])
			}
			p, err := c.OpenPreview(ctx, s.at(args[0]), args[1])
			if err != nil {
				return err
			}
			return s.print(p, func(w io.Writer) { row(w, p.URL) })
		})
	cmd.Flags().BoolVar(&end, "close", false, "delete the URL")
	return cmd
}

func (s *sandboxes) network() *cobra.Command {
	var off bool
	var change networkFlags
	cmd := s.command("network NAME", "Show or change what a sandbox may connect to", `  atoll sandbox network builder
  atoll sandbox network builder --deny api.example.com
  atoll sandbox network builder --off`, cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			sb, err := c.Sandbox(ctx, s.at(args[0]))
			if err != nil {
				return err
			}
			in, err := change.over(sb.Network)
			if err != nil {
				return err
			}
			if off {
				in = &sdk.NetworkChange{Enabled: new(bool)}
			}
			if in != nil {
				if sb, err = c.ChangeSandboxNetwork(ctx, s.at(args[0]), *in); err != nil {
					return err
				}
			}
			return s.print(sb.Network, func(w io.Writer) { showNetwork(w, sb.Network) })
		})
	cmd.Long = cmd.Short + `.

A sandbox reaches what both its own policy and that of its environment allow.`
	change.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&off, "off", false, "turn its network off")
	cmd.MarkFlagsMutuallyExclusive("off", "allow")
	cmd.MarkFlagsMutuallyExclusive("off", "deny")
	return cmd
}

// networkText is a network policy in a few words.
func networkText(n sdk.NetworkPermissions) string {
	switch {
	case n.Unrestricted:
		return "unrestricted"
	case n.Enabled:
		return "hosts: " + strings.Join(append(append([]string{}, n.AllowedHosts...), n.AllowedCidrs...), ", ")
	}
	return "off"
}

func showNetwork(w io.Writer, n sdk.NetworkPermissions) {
	row(w, "network", networkText(n))
	for _, port := range n.BlockedPorts {
		row(w, "blocked port", port)
	}
}
