package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
)

// openDataFolder makes the data folder, or closes one that there is to other users: it has
// records, output and keys. A folder that others use, too, is refused.
func openDataFolder(path string, log *slog.Logger) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("create the data folder: %w", err)
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("open the data folder: %w", err)
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err != nil {
		return fmt.Errorf("stat the data folder: %w", err)
	}
	const others = 0o077
	mode := info.Mode()
	if mode.Perm()&others == 0 {
		return nil
	}
	root, err := os.Stat("/")
	if err != nil {
		return err
	}
	if mode&fs.ModeSticky != 0 || os.SameFile(info, root) {
		return fmt.Errorf("other users share the data folder %s: set data_dir to a folder only for Atoll, such as %s", path, path+"/atoll")
	}
	if err := dir.Chmod(mode &^ others); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the data folder %s is open to other users (mode %04o) and belongs to one of them: ask its owner to run chmod 700 on it, or set data_dir to a folder only for Atoll", path, mode.Perm())
	} else if err != nil {
		return fmt.Errorf("restrict the data folder to its owner: %w", err)
	}
	log.Warn("other users could read the data folder; restricted it to its owner", "data_dir", path, "mode", fmt.Sprintf("%04o", mode.Perm()))
	return nil
}
