package volume

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/storage"
)

// List lists a folder of a connection's volume, by name. A volume that nothing
// was mounted from yet is empty.
func (s Store) List(tenant, connection string, p storage.Path) ([]storage.File, error) {
	dir, err := s.Open(tenant, connection, p, false)
	if errors.Is(err, fs.ErrNotExist) && p == "" {
		return []storage.File{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	readable, err := beneath(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, explain(p, err)
	}
	defer readable.Close()
	names, err := readable.Readdirnames(storage.MaxList + 1)
	if len(names) > storage.MaxList {
		return nil, storage.ErrManyEntries
	}
	if err != nil && len(names) > 0 {
		return nil, err
	}
	slices.Sort(names)
	out := make([]storage.File, 0, len(names))
	for _, name := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(int(readable.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			continue // it is gone by now
		}
		name = strings.ToValidUTF8(name, "\uFFFD")
		f := storage.File{Name: name, Path: string(p.Join(storage.Path(name))), Modified: time.Unix(st.Mtim.Unix()).UTC(), IsFolder: st.Mode&unix.S_IFMT == unix.S_IFDIR}
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			f.Size = st.Size
		}
		out = append(out, f)
	}
	return out, nil
}
