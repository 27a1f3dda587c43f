package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/image/erofs"
	"github.com/atoll-run/atoll/internal/runtime/gvisor"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Platform is what sandboxes are made with.
type Platform struct {
	Runsc      string // path of atoll-runsc
	Guest      string // path of atoll-guest
	State      string // folder for sandboxes and what they are made from
	CgroupName string // name of the control group that sandboxes' groups are made in
	Log        *slog.Logger
}

// Runtime is a sandbox.Runtime that can let go of its state folder.
type Runtime interface {
	sandbox.Runtime
	Close() error
}

// openRuntime returns the runtime of a platform.
func openRuntime(_ context.Context, p Platform) (Runtime, error) {
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return nil, err
	}
	guestImage, err := writeGuest(p)
	if err != nil {
		return nil, err
	}
	rt, err := gvisor.New(gvisor.Config{
		Runsc: p.Runsc, Guest: guestImage, State: filepath.Join(p.State, "gvisor"), Cgroups: openCgroups(p),
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "a program that makes sandboxes is missing; 'make build' builds it")
	}
	return rt, err
}

// writeGuest writes the small image that holds the guest and its hooks, named
// by what is in it, so that sandboxes of an earlier version keep theirs.
func writeGuest(p Platform) (string, error) {
	binary, err := os.ReadFile(p.Guest)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "the guest's binary is missing; 'make build' builds it")
	}
	files := map[string]erofs.File{"guest": {Mode: 0o755, Data: binary}}
	hash := sha256.New()
	hash.Write(binary)
	for name, data := range guest.Files() {
		files[name] = erofs.File{Mode: 0o644, Data: data}
	}
	for _, name := range sortedNames(files) {
		fmt.Fprintf(hash, "%s %d\n", name, len(files[name].Data))
		hash.Write(files[name].Data)
	}
	path := filepath.Join(p.State, "guest-"+hex.EncodeToString(hash.Sum(nil))[:16]+".erofs")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := erofs.WriteFiles(path, files); err != nil {
		return "", fmt.Errorf("write the guest's image: %w", err)
	}
	// The sandbox's kernel opens it as an unprivileged user.
	return path, os.Chmod(path, 0o644)
}
