package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// modelKeyCommand is for tenants' own keys for models.
func (r *remote) modelKeyCommand() *cobra.Command {
	cmd := group(&cobra.Command{Use: "key", Short: "Manage the tenants' own keys for models", Example: `  atoll model key set acme acme/large --key-file ./key
  atoll model key list acme`})
	var keyFile string
	set := r.command("set TENANT NAME", "Set a tenant's own key for a model", "", cobra.ExactArgs(2), func(ctx context.Context, c *sdk.Client, args []string) error {
		key, err := r.app.readSmall(keyFile)
		if err != nil {
			return err
		}
		made, err := c.SetTenantModelKey(ctx, args[0], args[1], key)
		if err != nil {
			return err
		}
		return r.print(made, func(w io.Writer) {
			row(w, "model", made.Model)
			row(w, "base url", made.BaseURL)
		})
	})
	set.Flags().StringVar(&keyFile, "key-file", "", "file with the tenant's key for the provider, - for stdin (required)")
	_ = set.MarkFlagRequired("key-file") // fails for a flag that there is not
	cmd.AddCommand(
		r.command("list TENANT", "List a tenant's own keys, without the keys", "", cobra.ExactArgs(1), shows(
			func(ctx context.Context, c *sdk.Client, args []string) ([]sdk.ModelKey, error) {
				return c.TenantModelKeys(args[0]).All(ctx, 0)
			}, r.listModelKeys)),
		set,
		r.deletion("TENANT", "NAME", "Remove a tenant's own keys, so that its models use the operator's key again", "", func(ctx context.Context, c *sdk.Client, lead []string, name string) error {
			return c.DeleteTenantModelKey(ctx, lead[0], name)
		}))
	return cmd
}

func (r *remote) listModelKeys(all []sdk.ModelKey) error {
	return listing(&r.printer, []any{"MODEL", "BASE URL", "USED", "GIVEN"}, func(k sdk.ModelKey) []any {
		return []any{k.Model, k.BaseURL, onOff(k.InUse), when(k.CreatedAt)}
	})(all)
}
