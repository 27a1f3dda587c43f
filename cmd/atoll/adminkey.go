package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/app/config"
)

func adminKeyPath(cfg *config.Config) string { return filepath.Join(cfg.DataDir, adminKeyFile) }

// keepAdminKey keeps an admin key for the commands of this machine. discard puts back the file
// that was there before.
func keepAdminKey(cfg *config.Config, key string) (discard func() error, err error) {
	path := adminKeyPath(cfg)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	discard = func() error { return os.Remove(path) }
	if err == nil {
		discard = func() error { return errors.Join(writePrivate(path, string(before), true), giveToOwner(path)) }
	}
	if err := writeKey(path, key, true); err != nil {
		return nil, err
	}
	return discard, giveToOwner(path)
}

// giveToOwner gives a file that root wrote to the user whose folder it is in, as which the server
// runs.
func giveToOwner(path string) error {
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 || owner.Uid == 0 {
		return nil
	}
	return os.Lchown(path, int(owner.Uid), int(owner.Gid)) // which follows no link that the owner has put there meanwhile
}

// showAdminKey shows an admin key, this once.
func (a *cli) showAdminKey(cfg *config.Config, key, what string) {
	fmt.Fprintf(a.std.err, "\n%s, shown this once:\n\n    %s\n\nCommands on this machine read it from %s. Delete that file once you keep the key elsewhere.\n\n", what, key, adminKeyPath(cfg))
}

func (r *remote) recoverAdmin() *cobra.Command {
	var revokeOthers bool
	cmd := &cobra.Command{
		Use:   "recover-admin",
		Short: "Create an admin key on the server's machine, without an existing one",
		Long: `Create an admin key, show it once and store it in data_dir, for operators who
lost theirs. The command writes to the server's database directly, so it runs on
the server's machine, as root or as the user of the server, with the server's
settings. The server may be running; it accepts the key at once.

The policy events of the tenant operator record who ran it.`,
		Example: `  atoll key recover-admin
  sudo atoll key recover-admin --revoke-others
  atoll key recover-admin --data-dir ./data`,
		Args: cobra.NoArgs,
		RunE: failing(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			if r.baseURL != "" || r.keyFile != "" {
				return wrong("recover-admin changes the database of this machine's server: omit --base-url and --key-file; select another data folder with --data-dir")
			}
			cfg, err := config.Load(r.sources())
			if err != nil {
				return &exit{exitUsage, err}
			}
			k, key, err := r.app.local(cfg).RecoverAdminKey(ctx, revokeOthers, func(key string) (func() error, error) { return keepAdminKey(cfg, key) })
			if key == "" {
				return err
			}
			if r.json {
				return errors.Join(err, r.print(map[string]string{"id": k.ID, "name": k.Name, "key": key, "file": adminKeyPath(cfg)}, nil))
			}
			r.app.showAdminKey(cfg, key, "The new admin key "+k.Name)
			return err
		}),
	}
	cmd.Flags().BoolVar(&revokeOthers, "revoke-others", false, "revoke all other admin keys")
	return cmd
}

// local changes the records of this machine's server.
func (a *cli) local(cfg *config.Config) app.Local {
	return app.Local{Settings: cfg, Version: version(), Actor: a.hostActor(), Log: a.logger(cfg)}
}

// hostActor names the user of this machine who changes records without a key.
func (a *cli) hostActor() string {
	name := fmt.Sprintf("uid %d", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if by := a.getenv("SUDO_USER"); by != "" && os.Getuid() == 0 {
		name = by + " (sudo)"
	}
	return "host:" + name
}
