package warm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// A sandbox that can be given another home directory mounts a folder of the host
// that is its own and empty. The home is moved there by its name, and the guest,
// told to, puts it in its place.

// homeTools are the folders of a home directory that packages put their programs
// in, ahead of PATH.
var homeTools = []string{runtime.Home + "/.local/bin", runtime.Home + "/node_modules/.bin"}

// homeEnv adds to the variables of programs what has packages that they install
// go to their home directory, whatever the image: pip does so by itself where it
// may not write to the system's packages, unless a distribution forbids it.
func homeEnv(env map[string]string, set ...map[string]string) map[string]string {
	env = maps.Clone(env)
	for name, value := range map[string]string{"PIP_BREAK_SYSTEM_PACKAGES": "1", "npm_config_prefix": runtime.Home + "/.local"} {
		if !slices.ContainsFunc(set, func(m map[string]string) bool { return m[name] != "" }) {
			env[name] = value
		}
	}
	path := strings.Split(env["PATH"], ":")
	for i, dir := range homeTools {
		if !slices.Contains(path, dir) {
			path = slices.Insert(path, min(i, len(path)), dir)
		}
	}
	env["PATH"] = strings.Join(path, ":")
	return env
}

// HomePath is where a sandbox finds the home directory that it is given. homes is
// Config.Homes.
func HomePath(homes string, id runtime.ID) string {
	return filepath.Join(homes, string(id), initclient.HomeName)
}

func (m *Maker) homeMount(id runtime.ID) runtime.Mount {
	return runtime.Mount{Source: filepath.Join(m.cfg.Homes, string(id)), Target: initclient.SharedFolder, Writable: true}
}

// makeShared makes the folder that a sandbox mounts. Only its guest may pass
// through it.
func makeShared(path string) error {
	owners, err := idmap.Find()
	if err != nil {
		return err
	}
	uid, _ := owners.UID.ToHost(0)
	gid, _ := owners.GID.ToHost(0)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return os.Lchown(path, int(uid), int(gid))
}

// removeShared removes the folders of a sandbox that is no more, if it had any.
func (m *Maker) removeShared(id runtime.ID) error {
	stored := RemoveStorage(m.cfg.Storage, id)
	if m.cfg.Homes == "" {
		return stored
	}
	path := filepath.Join(m.cfg.Homes, string(id))
	err := os.Remove(path) // empty as a rule
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(stored, os.RemoveAll(path))
	}
	return stored
}

// Enter gives programs the home directory that was moved to HomePath. An empty
// one gets what the image has there if fill is set. It comes before the first
// program, and may be called again by a server that takes the sandbox over.
func (s *Sandbox) Enter(ctx context.Context, fill bool) error {
	ctx, cancel := s.untilEnd(ctx)
	defer cancel()
	return s.guest.Enter(ctx, fill)
}

// untilEnd returns a context that is canceled when the sandbox ends, too.
func (s *Sandbox) untilEnd(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // ends with ctx
		select {
		case <-s.instance.Done():
			cancel(errLost)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// EndHome ends everything in a sandbox, so that no process writes to the home
// directory at HomePath any more, and takes the program's own file out of it: a
// thread keeps what programs left, not the programs.
func EndHome(ctx context.Context, rt runtime.Runtime, homes string, id runtime.ID, p execution.Program) error {
	if err := rt.Kill(ctx, id); err != nil {
		return err
	}
	home, err := os.OpenRoot(filepath.Join(homes, string(id)))
	if err != nil {
		return err
	}
	defer home.Close()
	// A program that broke out of the sandbox may have put a link there.
	if st, err := home.Lstat(initclient.HomeName); err != nil || !st.IsDir() {
		return fmt.Errorf("the home directory of %s is no longer a directory: %w", id, errors.Join(err, fs.ErrInvalid))
	}
	file := filepath.Join(initclient.HomeName, execution.ProgramFile(p.Language))
	if st, err := home.Lstat(file); err != nil || !st.Mode().IsRegular() || st.Size() != int64(len(p.Code)) {
		return nil // it is not there, or another one
	}
	if data, err := home.ReadFile(file); err != nil || string(data) != p.Code {
		return err
	}
	return home.Remove(file)
}

// Environ is the whole environment of a program whose home is its own, by an
// image's variables and configured ones over them.
func Environ(image, configured map[string]string) []string {
	return environ(homeEnv(programEnv(image, configured), image, configured))
}
