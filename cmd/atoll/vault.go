package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) vaultCommand() *cobra.Command {
	cmd, r := a.remoteGroup("vault", "Create, show and delete vaults: credentials for sessions",
		`A vault has credentials for the sessions that name it: tokens of MCP servers, and
secrets that are sent to some hosts. They are written and never shown. These are the
vaults of one tenant: the one whose key this is. Changes need the scope environments.`,
		`  atoll vault create "Credentials of user 456"
  atoll vault credential add $vault --mcp-server https://mcp.example.com/shop --secret-file ./token
  atoll vault credential add $vault API_TOKEN --host api.example.com --secret-file ./token
  atoll session create shopper --vault $vault`, devKeyFile, map[string]completer{"VAULT": vaultIDs})
	cmd.AddCommand(r.vaultCreate(), r.vaultList(), r.vaultShow(), r.vaultArchive(), r.vaultDelete(), r.credentialCommands())
	return cmd
}

func vaultIDs(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.Vaults(false).All(ctx, maxNames)
	return namesOf(all, err, func(v sdk.Vault) string { return v.ID })
}

func (r *remote) vaultCreate() *cobra.Command {
	var metadata map[string]string
	cmd := r.command("create NAME", "Make a vault", "  atoll vault create 'Credentials of user 456' --metadata user_id=user_456", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		made, err := c.CreateVault(ctx, sdk.NewVault{DisplayName: args[0], Metadata: metadata})
		if err != nil {
			return err
		}
		return r.showVault(made)
	})
	cmd.Flags().StringToStringVar(&metadata, "metadata", nil, "metadata, as key=value")
	return cmd
}

func (r *remote) vaultList() *cobra.Command {
	var archived bool
	var limit int
	cmd := r.command("list", "List vaults, newest first", "", cobra.NoArgs, func(ctx context.Context, c *sdk.Client, _ []string) error {
		all, err := c.Vaults(archived).All(ctx, limit)
		if err != nil {
			return err
		}
		return listing(&r.printer, []any{"ID", "NAME", "CHANGED", "ARCHIVED"}, func(v sdk.Vault) []any {
			return []any{v.ID, v.DisplayName, when(v.UpdatedAt), whenOr(v.ArchivedAt, "-")}
		})(all)
	})
	cmd.Flags().BoolVar(&archived, "archived", false, "also list archived ones")
	cmd.Flags().IntVar(&limit, "limit", 100, "vaults to list at most; 0 for all")
	return cmd
}

func (r *remote) vaultShow() *cobra.Command {
	return r.command("show VAULT", "Show a vault", "", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		got, err := c.Vault(ctx, args[0])
		if err != nil {
			return err
		}
		return r.showVault(got)
	})
}

func (r *remote) vaultArchive() *cobra.Command {
	return r.command("archive VAULT…", "Archive vaults: their secrets are removed, and sessions continue without them", "", cobra.MinimumNArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		var errs []error
		for _, id := range args {
			_, err := c.ArchiveVault(ctx, id)
			if err == nil {
				err = r.say("archived %s", id)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

func (r *remote) vaultDelete() *cobra.Command {
	return r.command("delete VAULT…", "Delete vaults with their credentials", "", cobra.MinimumNArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		return r.deletes(args, false, func(id string) error { return c.DeleteVault(ctx, id) })
	})
}

func (r *remote) showVault(v sdk.Vault) error {
	return r.print(v, func(w io.Writer) {
		row(w, "id", v.ID)
		row(w, "name", v.DisplayName)
		for _, key := range slices.Sorted(maps.Keys(v.Metadata)) {
			row(w, "metadata", fmt.Sprintf("%s=%s", key, v.Metadata[key]))
		}
		row(w, "created", when(v.CreatedAt))
		row(w, "changed", when(v.UpdatedAt))
		row(w, "archived", whenOr(v.ArchivedAt, "-"))
	})
}

func (r *remote) credentialCommands() *cobra.Command {
	cmd := group(&cobra.Command{Use: "credential", Short: "Add, list and remove credentials of a vault"})
	cmd.AddCommand(r.credentialAdd(), r.credentialList(), r.credentialRemove())
	return cmd
}

func (r *remote) credentialAdd() *cobra.Command {
	var server, file, name string
	var hosts []string
	cmd := r.command("add VAULT [VARIABLE]", "Add a token of an MCP server, or a variable that is sent to hosts",
		"  atoll vault credential add $vault --mcp-server https://mcp.example.com/shop --secret-file ./token\n  atoll vault credential add $vault API_TOKEN --host api.example.com --secret-file ./token", cobra.RangeArgs(1, 2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			if (server != "") == (len(hosts) > 0) || (len(args) == 2) != (len(hosts) > 0) {
				return wrong("pass --mcp-server, or a VARIABLE and --host")
			}
			if file == "" {
				return wrong("pass the secret with --secret-file; - reads stdin")
			}
			secret, err := r.app.readSmall(file)
			if err != nil {
				return err
			}
			in := sdk.NewCredential{Auth: sdk.NewAuth{Type: "static_bearer", McpServerURL: &server, Token: &secret}}
			if len(hosts) > 0 {
				in.Auth = sdk.NewAuth{Type: "host_secret", SecretName: &args[1], SecretValue: &secret, Hosts: &hosts}
			}
			if name != "" {
				in.DisplayName = &name
			}
			made, err := c.AddVaultCredential(ctx, args[0], in)
			if err != nil {
				return err
			}
			return r.showCredential(made)
		})
	cmd.Flags().StringVar(&server, "mcp-server", "", "URL of the MCP server that the secret is a bearer token for")
	cmd.Flags().StringSliceVar(&hosts, "host", nil, "host that receives the secret, or *.example.com for all its subdomains")
	cmd.Flags().StringVar(&file, "secret-file", "", "file with the secret, - for stdin")
	cmd.Flags().StringVar(&name, "display-name", "", "display name")
	return cmd
}

func (r *remote) credentialList() *cobra.Command {
	var archived bool
	var limit int
	cmd := r.command("list VAULT", "List the credentials of a vault, newest first", "", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		all, err := c.VaultCredentials(args[0], archived).All(ctx, limit)
		if err != nil {
			return err
		}
		return listing(&r.printer, []any{"ID", "TYPE", "FOR", "CHANGED", "ARCHIVED"}, func(of sdk.Credential) []any {
			return []any{of.ID, of.Auth.Type, credentialFor(&of.Auth), when(of.UpdatedAt), whenOr(of.ArchivedAt, "-")}
		})(all)
	})
	cmd.Flags().BoolVar(&archived, "archived", false, "also list archived ones")
	cmd.Flags().IntVar(&limit, "limit", 100, "credentials to list at most; 0 for all")
	return cmd
}

func (r *remote) credentialRemove() *cobra.Command {
	cmd := r.command("remove VAULT CREDENTIAL…", "Delete credentials of a vault", "", cobra.MinimumNArgs(2), func(ctx context.Context, c *sdk.Client, args []string) error {
		return r.deletes(args[1:], false, func(id string) error { return c.DeleteVaultCredential(ctx, args[0], id) })
	})
	cmd.Aliases = []string{"delete"}
	return cmd
}

// credentialFor is what a credential is for.
func credentialFor(a *sdk.CredentialAuth) string {
	if a.Hosts == nil {
		return *or(a.McpServerURL, "-")
	}
	return *or(a.SecretName, "-") + " to " + strings.Join(*a.Hosts, ", ")
}

func (r *remote) showCredential(c sdk.Credential) error {
	return r.print(c, func(w io.Writer) {
		row(w, "id", c.ID)
		row(w, "vault", c.VaultID)
		row(w, "name", *or(c.DisplayName, "-"))
		row(w, "type", c.Auth.Type)
		row(w, "for", credentialFor(&c.Auth))
		row(w, "created", when(c.CreatedAt))
		row(w, "changed", when(c.UpdatedAt))
		row(w, "archived", whenOr(c.ArchivedAt, "-"))
	})
}
