package app

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/app/localserver"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// lockWait is how long the lock of a process that was killed may outlive it.
const lockWait = 2 * time.Second

// lockModule makes this process the data folder's one server, before anything in the
// folder is opened: its bus has one owner.
type lockModule struct{ *process }

// Start implements module.Part.
func (m *lockModule) Start(ctx context.Context, undo *module.Undo) error {
	file, err := os.OpenFile(m.path(localserver.LockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(lockWait); ; {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), file.Close())
		}
	}
	if err != nil {
		return errors.Join(fault.Wrap(fault.Conflict, err, "another server uses "+m.cfg.Settings.DataDir+": stop it, or give this one a data_dir of its own"), file.Close())
	}
	undo.Add(func(context.Context) error { return file.Close() })
	return nil
}
