package warm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image"
)

var (
	importLine = regexp.MustCompile(`(?m)^[ \t]*(?:import|from)[ \t]+([^#\n]*)`)
	moduleName = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// template returns the folder of the checkpoint for a key, which is made at its
// first use: importing the preloads costs about four times what restoring does.
// A checkpoint belongs to this process: it fits one guest, image and set of
// limits, and making it anew at each start is cheaper than proving that it
// still does.
func (m *Maker) template(ctx context.Context, key Key, in image.Interpreter) (string, error) {
	t := m.templates[key]
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir != "" || t.fail != nil {
		return t.dir, t.fail
	}
	dir, err := m.makeTemplate(ctx, key, in)
	if err != nil {
		if ctx.Err() != nil {
			return "", err // the next one may try again
		}
		t.fail = err
		if !errors.Is(err, runtime.ErrUnsupported) {
			m.cfg.Log.Warn("cannot create a checkpoint with the preloads imported; starting sandboxes from scratch", "key", key.String(), "error", err)
		}
		return "", err
	}
	t.dir = dir
	return dir, nil
}

func (m *Maker) makeTemplate(ctx context.Context, key Key, in image.Interpreter) (_ string, err error) {
	name := string(key.Language)
	if key.Home {
		name += "-home"
	}
	if key.Storage {
		name += "-storage"
	}
	dir := filepath.Join(m.cfg.Templates, name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	defer func() {
		if err != nil { // a part of a checkpoint can be large
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	s, err := m.boot(ctx, key, in, true)
	if err != nil {
		return "", err
	}
	if err := s.guest.Close(); err != nil {
		return "", errors.Join(err, s.Destroy(context.WithoutCancel(ctx)))
	}
	if err := s.instance.Checkpoint(ctx, dir); err != nil {
		return "", errors.Join(fmt.Errorf("checkpoint %s: %w", key, err), s.Destroy(context.WithoutCancel(ctx)))
	}
	if err := s.Destroy(context.WithoutCancel(ctx)); err != nil {
		return "", err
	}
	return dir, nil
}
