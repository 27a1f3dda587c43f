package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// deletedEvery is how often 'tenant delete' polls for the end of the deletion.
const deletedEvery = time.Second

func (a *cli) deleteTenant(r *remote) *cobra.Command {
	var yes, detach bool
	cmd := r.command("delete NAME", "Delete a tenant with everything that belongs to it", `  atoll tenant delete acme
  atoll tenant delete acme --yes --detach`, cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			t, err := c.Tenant(ctx, args[0])
			if err != nil {
				return err
			}
			if err := a.confirmDeletion(t.Name, yes); err != nil {
				return err
			}
			if t, err = c.DeleteTenant(ctx, t.ID); err != nil {
				return err
			}
			if !detach {
				if err := a.awaitDeletion(ctx, c, &t); err != nil {
					return err
				}
			}
			return r.print(t, func(w io.Writer) {
				if detach {
					fmt.Fprintf(w, "The server is deleting the tenant %s (%s)\n", t.Name, t.ID)
				} else {
					fmt.Fprintf(w, "The tenant %s (%s) is deleted; its audit trail stays under its id\n", t.Name, t.ID)
				}
			})
		})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for the tenant's name first")
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "do not wait until everything is deleted")
	return cmd
}

// confirmDeletion asks the user to type the tenant's name.
func (a *cli) confirmDeletion(name string, yes bool) error {
	if yes {
		return nil
	}
	if !isTerminal(a.std.in) {
		return wrong("deleting the tenant %s deletes its sandboxes, files, sessions and keys for good; pass --yes to skip the confirmation", name)
	}
	fmt.Fprintf(a.std.err, "This deletes the tenant %[1]s with its sandboxes, files, sessions and keys for good.\nType %[1]s to confirm: ", name)
	typed, err := bufio.NewReader(a.std.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(typed) != name {
		return fmt.Errorf("you did not type %s; nothing was deleted", name)
	}
	return nil
}

// awaitDeletion waits until the server has deleted a tenant.
func (a *cli) awaitDeletion(ctx context.Context, c *sdk.Client, t *sdk.Tenant) error {
	for {
		_, err := c.Tenant(ctx, t.ID)
		if errors.Is(err, sdk.ErrNotFound) {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("the server is deleting the tenant %s, but the command cannot check its progress: %w", t.Name, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server continues to delete the tenant %s: %w", t.Name, context.Cause(ctx))
		case <-time.After(deletedEvery):
		}
	}
}
