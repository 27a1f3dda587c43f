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

// CheckVolumes says what is wrong with the setting volumes. It changes nothing and asks no other
// machine, so that a start can call it before it does anything else.
func CheckVolumes(ctx context.Context, where string) error {
	scheme, _, isURL := strings.Cut(where, "://")
	switch {
	case where == "":
		return nil
	case scheme == "file":
		return errors.New("volumes: a folder is given by its path alone")
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
		return nil // the start makes it
	case err != nil:
		return fmt.Errorf("volumes: %w", err)
	case !info.IsDir():
		return fmt.Errorf("volumes: %s is a file, not a folder", where)
	}
	return nil
}
