package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/storage"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) connectionCommand() *cobra.Command {
	cmd, r := a.remoteGroup("connection", "Create, show and grant connections to storage",
		`A connection is a bucket or a volume of a tenant. Environments and keys that it
is granted to mount it at /data/SLUG.`,
		`  atoll connection create acme team --kind volume
  atoll connection create acme reports --kind s3 --region eu-central-1 --bucket acme-reports --access-key-id AKIA… --secret-file ./secret
  atoll connection grant acme reports --environment default --prefix 2026 --read-only
  atoll connection list acme`, adminKeyFile, map[string]completer{"TENANT": tenantNames, "SLUG": slugs, "GRANT": grantIDs})
	cmd.AddCommand(
		r.command("list TENANT", "List a tenant's connections", "", cobra.ExactArgs(1), shows(allOf((*sdk.Client).Connections),
			listing(&r.printer, []any{"SLUG", "KIND", "BUCKET", "PREFIX", "MODE", "ID"}, connectionCells))),
		r.command("show TENANT SLUG", "Show a connection", "", cobra.ExactArgs(2), shows(two((*sdk.Client).Connection), r.showConnection)),
		r.createConnection(), r.changeConnection(),
		r.deletion("TENANT", "SLUG", "Delete unused connections; the stored files stay", "", func(ctx context.Context, c *sdk.Client, lead []string, slug string) error {
			return c.DeleteConnection(ctx, lead[0], slug)
		}),
		r.grantConnection(),
		r.command("grants TENANT SLUG", "List the grants of a connection", "", cobra.ExactArgs(2), shows(allOfTwo((*sdk.Client).Grants),
			listing(&r.printer, []any{"ID", "ENVIRONMENT", "KEY", "PREFIX", "MODE"}, grantCells))),
		r.command("ungrant TENANT SLUG GRANT…", "Remove grants", "", cobra.MinimumNArgs(3), func(ctx context.Context, c *sdk.Client, args []string) error {
			return r.deletes(args[2:], false, func(id string) error { return c.DeleteGrant(ctx, args[0], args[1], id) })
		}))
	return cmd
}

// secretFlags are the credentials of a bucket. The secret part comes from a file,
// so that no list of processes shows it.
type secretFlags struct{ id, file string }

func (f *secretFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.id, "access-key-id", "", "of s3")
	cmd.Flags().StringVar(&f.file, "secret-file", "", "file with the secret: of s3 the secret access key, of gcs the service account's JSON, of azure the account's key; - for stdin")
}

// read returns the credentials as those of a kind, nil if none are given.
func (f *secretFlags) read(a *cli, kind string) (*sdk.Credentials, error) {
	if f.file == "" {
		return nil, nil
	}
	secret, err := a.readSmall(f.file)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "gcs":
		return &sdk.Credentials{ServiceAccount: secret}, nil
	case "azure":
		return &sdk.Credentials{AccountKey: secret}, nil
	}
	return &sdk.Credentials{AccessKeyID: f.id, SecretAccessKey: secret}, nil
}

func (r *remote) createConnection() *cobra.Command {
	var in sdk.NewConnection
	var kind, prefix string
	var readOnly bool
	var secret secretFlags
	cmd := r.command("create TENANT SLUG", "Create a connection after testing that it works", "", cobra.ExactArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) (err error) {
			in.Slug, in.Kind, in.Prefix, in.ReadOnly = args[1], kind, &prefix, &readOnly
			if in.Credentials, err = secret.read(r.app, kind); err != nil {
				return err
			}
			made, err := c.CreateConnection(ctx, args[0], in)
			if err != nil {
				return err
			}
			return r.showConnection(made)
		})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&kind, "kind", "volume", choices(storage.Kinds))
	flags.StringVar(&in.Bucket, "bucket", "", "bucket; of azure the container")
	flags.StringVar(&in.Region, "region", "", "of s3")
	flags.StringVar(&in.Endpoint, "endpoint", "", "URL of the service, where it is not the provider's own")
	flags.BoolVar(&in.PathStyle, "path-style", false, "of s3: the bucket is in the path of URLs")
	flags.StringVar(&in.Account, "account", "", "of azure")
	secret.add(cmd)
	flags.StringVar(&prefix, "prefix", "", "folder that is all anything sees of it")
	flags.BoolVar(&readOnly, "read-only", false, "nothing may write to it")
	return cmd
}

func (r *remote) changeConnection() *cobra.Command {
	var prefix string
	var readOnly bool
	var secret secretFlags
	var cmd *cobra.Command
	cmd = r.command("change TENANT SLUG", "Change a connection's prefix, mode or credentials", "", cobra.ExactArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			in := sdk.ConnectionChange{Prefix: ifGiven(cmd, "prefix", &prefix), ReadOnly: ifGiven(cmd, "read-only", &readOnly)}
			if secret.file != "" {
				now, err := c.Connection(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				if in.Credentials, err = secret.read(r.app, now.Kind); err != nil {
					return err
				}
			}
			if in == (sdk.ConnectionChange{}) {
				return errNothing
			}
			changed, err := c.ChangeConnection(ctx, args[0], args[1], in)
			if err != nil {
				return err
			}
			return r.showConnection(changed)
		})
	cmd.Flags().StringVar(&prefix, "prefix", "", "folder that is all anything sees of it")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "nothing may write to it; =false to let grants decide")
	secret.add(cmd)
	return cmd
}

func (r *remote) grantConnection() *cobra.Command {
	var environment, key, prefix string
	var readOnly bool
	var cmd *cobra.Command
	cmd = r.command("grant TENANT SLUG", "Grant a connection to an environment or a key", "", cobra.ExactArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			g, err := c.CreateGrant(ctx, args[0], args[1], sdk.NewGrant{
				Environment: ifGiven(cmd, "environment", &environment), Key: ifGiven(cmd, "key", &key), Prefix: &prefix, ReadOnly: &readOnly,
			})
			if err != nil {
				return err
			}
			return r.print(g, func(w io.Writer) { row(w, grantCells(g)...) })
		})
	cmd.Flags().StringVar(&environment, "environment", "", "environment that mounts it")
	cmd.Flags().StringVar(&key, "key", "", "key that mounts it")
	cmd.Flags().StringVar(&prefix, "prefix", "", "folder to mount, from the connection's root")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "programs may not write")
	return cmd
}

func (r *remote) showConnection(c sdk.Connection) error {
	return r.print(c, func(w io.Writer) { row(w, connectionCells(c)...) })
}

func connectionCells(c sdk.Connection) []any {
	return []any{c.Slug, c.Kind, c.Bucket, c.Prefix, mode(c.ReadOnly), c.ID}
}

func grantCells(g sdk.Grant) []any {
	return []any{g.ID, text(g.Environment), text(g.Key), g.Prefix, mode(g.ReadOnly)}
}

func mode(readOnly bool) string {
	if readOnly {
		return "read-only"
	}
	return "read-write"
}
