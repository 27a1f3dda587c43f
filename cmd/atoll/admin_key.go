package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/tenant"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// keyFlags are what can be set of a key.
type keyFlags struct {
	app                          *cli
	cmd                          *cobra.Command
	name, environment, expiresAt string
	webhookURL, webhookSecret    string
	scopes                       []string
	expiresIn                    time.Duration
	vars                         *varFlags
}

func (a *cli) addKeyFlags(cmd *cobra.Command) *keyFlags {
	f := &keyFlags{app: a, cmd: cmd}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.scopes, "scopes", nil, "scopes of the key: "+strings.Join(texts(tenant.Scopes), ", ")+" ("+strings.Join(texts(tenant.DefaultScopes), ",")+")")
	flags.DurationVar(&f.expiresIn, "expires-in", 0, "lifetime, such as 720h")
	flags.StringVar(&f.expiresAt, "expires-at", "", "expiry time, such as 2027-01-01T00:00:00Z, or never (never)")
	flags.StringVar(&f.webhookURL, "webhook-url", "", "URL that Atoll notifies when an asynchronous execution ends; empty for none")
	flags.StringVar(&f.webhookSecret, "webhook-secret-file", "", "file with the secret that signs webhooks, - for stdin; empty for no signature")
	f.vars = a.addVarFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("expires-in", "expires-at")
	return f
}

// change is what the flags on the command line say.
func (f *keyFlags) change() (sdk.KeyChange, error) {
	c := sdk.KeyChange{
		Name: ifGiven(f.cmd, "name", &f.name), Scopes: ifGiven(f.cmd, "scopes", &f.scopes),
		ExpiresAt: ifGiven(f.cmd, "expires-at", &f.expiresAt), WebhookURL: ifGiven(f.cmd, "webhook-url", &f.webhookURL),
	}
	if f.cmd.Flags().Changed("expires-in") {
		if f.expiresIn <= 0 {
			return c, wrong("--expires-in must be positive")
		}
		at := time.Now().Add(f.expiresIn).UTC().Format(time.RFC3339Nano)
		c.ExpiresAt = &at
	}
	if f.cmd.Flags().Changed("webhook-secret-file") {
		secret := ""
		if f.webhookSecret != "" {
			var err error
			if secret, err = f.app.readSmall(f.webhookSecret); err != nil {
				return c, fmt.Errorf("--webhook-secret-file: %w", err)
			}
		}
		c.WebhookSecret = &secret
	}
	var err error
	if c.EnvVars, c.Secrets, c.Unset, err = f.vars.change(); err != nil {
		return c, err
	}
	c.SecretHosts, err = f.vars.hosts()
	return c, err
}

func (a *cli) keyCommand() *cobra.Command {
	cmd, r := a.remoteGroup("key", "Create, show, change and revoke API keys",
		`A key belongs to a tenant and is bound to one environment, which its requests
cannot change. It is shown once, when it is made; only its digest is kept.`,
		`  atoll key create acme ci --env reports --expires-in 720h --out ci.key
  atoll key create operator colleague --scopes admin
  atoll key revoke acme ci`, adminKeyFile, map[string]completer{"TENANT": tenantNames, "NAME": keyNames})

	var make *keyFlags
	var out string
	create := r.command("create TENANT NAME", "Create a key and print it once", `  atoll key create acme ci --env reports
  atoll key create acme hooks --env reports --webhook-url https://example.com/atoll --webhook-secret-file ./secret
  atoll key create operator colleague --scopes admin`, cobra.ExactArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			change, err := make.change()
			if err != nil {
				return err
			}
			if _, err := os.Lstat(out); out != "" && err == nil {
				return fmt.Errorf("--out %s: the file exists; choose another name", out)
			}
			in := sdk.NewKey{Name: args[1], Scopes: change.Scopes, ExpiresAt: change.ExpiresAt, WebhookURL: change.WebhookURL, WebhookSecret: change.WebhookSecret, EnvVars: change.EnvVars, Secrets: change.Secrets, SecretHosts: change.SecretHosts}
			if make.environment != "" {
				in.Environment = &make.environment
			}
			k, err := c.CreateKey(ctx, args[0], in)
			if err != nil {
				return err
			}
			if out != "" {
				if err := writeKey(out, k.Key, false); err != nil {
					_, revoked := c.RevokeKey(context.WithoutCancel(ctx), args[0], k.ID)
					return errors.Join(fmt.Errorf("cannot write the new key %s, so it was revoked: %w", k.ID, err), revoked)
				}
				k.Key = "" // it is in the file
				return r.print(k, func(w io.Writer) { fmt.Fprintf(w, "The key %s (%s) is in %s\n", k.Name, k.ID, out) })
			}
			if r.json {
				return r.print(k, nil)
			}
			fmt.Fprintf(a.std.err, "The key %s (%s); it is not shown again:\n", k.Name, k.ID)
			_, err = fmt.Fprintln(a.std.out, k.Key)
			return err
		})
	create.Long = create.Short + ".\n\nThe key alone goes to stdout, or with --out into a new file that only you can read."
	create.Flags().StringVar(&out, "out", "", "new file for the key, mode 0600; must not exist")
	make = a.addKeyFlags(create)
	create.Flags().StringVar(&make.environment, "env", "", "environment of its executions; required unless its only scope is admin")

	var change *keyFlags
	set := r.command("set TENANT NAME", "Change a key; omitted settings stay unchanged", `  atoll key set acme ci --scopes execute,read
  atoll key set acme ci --expires-at never
  atoll key set acme ci --webhook-url ''
  API_TOKEN=… atoll key set acme ci --secret-env API_TOKEN --var LOG_LEVEL=debug`, cobra.ExactArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			in, err := change.change()
			if err != nil {
				return err
			}
			if reflect.ValueOf(in).IsZero() {
				return errNothing
			}
			k, err := c.ChangeKey(ctx, args[0], args[1], in)
			if err != nil {
				return err
			}
			return r.showKey(k)
		})
	change = a.addKeyFlags(set)
	set.Flags().StringVar(&change.name, "name", "", "new name")
	change.vars.addUnset(set)

	revoke := r.command("revoke TENANT NAME…", "Revoke keys, at once; other servers refuse them within 10 seconds", "", cobra.MinimumNArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			var errs []error // one that cannot be revoked does not keep the others
			for _, name := range args[1:] {
				k, err := c.RevokeKey(ctx, args[0], name)
				if err == nil {
					err = r.showKey(k)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		})
	revoke.Aliases = []string{"delete", "rm"}

	cmd.AddCommand(create,
		r.command("list TENANT", "List a tenant's keys", "", cobra.ExactArgs(1), shows(allOf((*sdk.Client).Keys),
			listing(&r.printer, []any{"NAME", "ID", "KEY", "ENVIRONMENT", "SCOPES", "WEBHOOK", "STATE", "CREATED"}, func(k sdk.Key) []any {
				return []any{k.Name, k.ID, keyHint(k), text(k.Environment), strings.Join(k.Scopes, ","), text(k.WebhookURL), keyState(k), when(k.CreatedAt)}
			}))),
		r.command("show TENANT NAME", "Show a key's record", "", cobra.ExactArgs(2), shows(two((*sdk.Client).Key), r.showKey)),
		set,
		revoke,
		r.recoverAdmin())
	return cmd
}

func keyHint(k sdk.Key) string { return "…" + k.Hint }

func keyState(k sdk.Key) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked " + when(*k.RevokedAt)
	case k.ExpiresAt != nil && k.ExpiresAt.Before(time.Now()):
		return "expired " + when(*k.ExpiresAt)
	case k.ExpiresAt != nil:
		return "until " + when(*k.ExpiresAt)
	}
	return "active"
}

func (r *remote) showKey(k sdk.Key) error {
	return r.print(k, func(w io.Writer) {
		row(w, "name", k.Name)
		row(w, "id", k.ID)
		row(w, "key", keyHint(k))
		row(w, "state", keyState(k))
		row(w, "environment", text(k.Environment))
		row(w, "scopes", strings.Join(k.Scopes, ", "))
		row(w, "webhook", text(k.WebhookURL))
		row(w, "webhook signed", onOff(k.WebhookSigned))
		showVars(w, k.EnvVars, k.Secrets, k.SecretHosts)
		row(w, "created", when(k.CreatedAt))
	})
}
