package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/infra/nodecert"
)

// nodeCommand is about the servers of an installation.
func (a *cli) nodeCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "node", Short: "Connect the servers of an installation",
		Long: `Connect the servers of an installation, so that each of them can use the named
sandboxes of the others. Set node_listen, node_cert, node_key and node_ca on every
server.`,
	})
	cmd.AddCommand(a.nodeCert())
	return cmd
}

func (a *cli) nodeCert() *cobra.Command {
	var life time.Duration
	role := string(nodecert.All)
	cmd := &cobra.Command{
		Use:   "cert FOLDER HOST...",
		Short: "Write certificates for connections between servers",
		Long: `Write a certificate for each server of an installation, named by the host that
other servers connect to (node_address). The first use creates a certificate
authority in the folder.

Keep the folder on one machine. Copy only ca.pem and the two files of a server to
that server. A person who has ca.key can use every sandbox of the installation.

Set --role for servers of the role gateway or executor. The certificate of an
executor does not open connections to other executors.

To renew a certificate, run the command again and replace the files. A running
server reads them for each new connection.`,
		Example: `  atoll node cert ./certificates 10.0.0.1 10.0.0.2 10.0.0.3
  atoll node cert --life 2160h ./certificates atoll-1.internal
  atoll node cert --role executor ./certificates 10.0.1.1 10.0.1.2`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := args[0]
			for _, host := range args[1:] {
				cert, key, err := nodecert.Issue(dir, host, nodecert.Role(role), life)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.std.out, "%s\tnode_ca %s, node_cert %s, node_key %s\n", host, filepath.Join(dir, nodecert.CAFile), cert, key)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&role, "role", role, "role of the servers: all, gateway or executor")
	cmd.Flags().DurationVar(&life, "life", 365*24*time.Hour, "how long the certificates are valid")
	return cmd
}
