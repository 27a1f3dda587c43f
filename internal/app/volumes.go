package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/infra/blob"
)

// CheckVolumes validates the setting volumes. It changes nothing and contacts no other machine, so
// the server can call it first at startup.
func CheckVolumes(ctx context.Context, where string) error {
	scheme, _, isURL := strings.Cut(where, "://")
	switch {
	case where == "":
		return nil
	case scheme == "file":
		return errors.New("volumes: write a folder as a path, without file://")
	case isURL:
		b, err := blob.OpenBucket(ctx, where)
		if err != nil {
			return fmt.Errorf("volumes: %w", err)
		}
		return b.Close()
	case !filepath.IsAbs(where):
		return fmt.Errorf("volumes: %s must be an absolute path, or a bucket's URL", where)
	}
	switch info, err := os.Stat(where); {
	case errors.Is(err, fs.ErrNotExist):
		return nil // the server creates it at startup
	case err != nil:
		return fmt.Errorf("volumes: %w", err)
	case !info.IsDir():
		return fmt.Errorf("volumes: %s is a file, not a folder", where)
	}
	return nil
}
