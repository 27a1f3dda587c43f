package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// operations are what programs do to files. Each leaves the folder as it found it: "file"
// is a file in it, "full" a folder that is not empty.
var operations = map[string]func(in func(string) string) error{
	"create": func(in func(string) string) error {
		return errors.Join(os.WriteFile(in("a"), []byte("text"), 0o600), os.Remove(in("a")))
	},
	"create without a handle": func(in func(string) string) error {
		return errors.Join(unix.Mknod(in("a"), unix.S_IFREG|0o600, 0), os.Remove(in("a")))
	},
	"create what exists": func(in func(string) string) error {
		return fails(opens(in("file"), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY), unix.EEXIST)
	},
	"create without a name": func(in func(string) string) error {
		return fails(opens(in("."), unix.O_TMPFILE|unix.O_WRONLY), unix.EOPNOTSUPP)
	},
	"open":         func(in func(string) string) error { return opens(in("file"), unix.O_RDWR) },
	"truncate":     func(in func(string) string) error { return opens(in("file"), unix.O_WRONLY|unix.O_TRUNC) },
	"open missing": func(in func(string) string) error { return fails(opens(in("a"), unix.O_RDONLY), unix.ENOENT) },
	"open path":    func(in func(string) string) error { return opens(in("file"), unix.O_PATH) },
	"open through a file": func(in func(string) string) error {
		return fails(opens(in("file/a"), unix.O_RDONLY), unix.ENOTDIR)
	},
	"open folder": func(in func(string) string) error {
		_, err := os.ReadDir(in("full"))
		return err
	},
	"write folder": func(in func(string) string) error { return fails(opens(in("full"), unix.O_WRONLY), unix.EISDIR) },
	"link": func(in func(string) string) error {
		return errors.Join(os.Link(in("file"), in("a")), os.Remove(in("a")))
	},
	"link what exists": func(in func(string) string) error { return fails(os.Link(in("file"), in("file")), unix.EEXIST) },
	"link to a symlink": func(in func(string) string) error {
		return errors.Join(os.Symlink("file", in("a")), os.Link(in("a"), in("b")), os.Remove(in("b")), os.Remove(in("a")))
	},
	"link to a folder": func(in func(string) string) error { return fails(os.Link(in("full"), in("a")), unix.EPERM) },
	"link by descriptor": func(in func(string) string) error {
		f, err := os.Open(in("file"))
		if err != nil {
			return err
		}
		defer f.Close()
		err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.AT_FDCWD, in("a"), unix.AT_SYMLINK_FOLLOW)
		return errors.Join(err, os.Remove(in("a")))
	},
	"symlink": func(in func(string) string) error {
		err := os.Symlink("file", in("a"))
		_, e := os.Readlink(in("a"))
		_, through := os.ReadFile(in("a"))
		return errors.Join(err, e, through, os.Remove(in("a")))
	},
	"symlink what exists": func(in func(string) string) error { return fails(os.Symlink("a", in("file")), unix.EEXIST) },
	"folder": func(in func(string) string) error {
		return errors.Join(os.Mkdir(in("a"), 0o700), os.WriteFile(in("a/b"), nil, 0o600), os.RemoveAll(in("a")))
	},
	"folder that exists": func(in func(string) string) error { return fails(os.Mkdir(in("full"), 0o700), unix.EEXIST) },
	"remove full folder": func(in func(string) string) error { return fails(unix.Rmdir(in("full")), unix.ENOTEMPTY) },
	"remove missing":     func(in func(string) string) error { return fails(unix.Unlink(in("a")), unix.ENOENT) },
	"rename": func(in func(string) string) error {
		return errors.Join(os.Rename(in("file"), in("a")), os.Rename(in("a"), in("file")))
	},
	"rename over": func(in func(string) string) error {
		return errors.Join(os.WriteFile(in("a"), nil, 0o600), os.Rename(in("a"), in("file")))
	},
	"exchange": func(in func(string) string) error {
		return errors.Join(os.WriteFile(in("a"), nil, 0o600),
			unix.Renameat2(unix.AT_FDCWD, in("a"), unix.AT_FDCWD, in("file"), unix.RENAME_EXCHANGE), os.Remove(in("a")))
	},
	"attributes": func(in func(string) string) error {
		err := errors.Join(os.Chmod(in("file"), 0o640), os.Truncate(in("file"), 7), os.Chown(in("file"), os.Getuid(), os.Getgid()))
		times := []unix.Timeval{{Sec: 1}, {Sec: 2}}
		var s unix.Statfs_t
		return errors.Join(err, unix.Utimes(in("file"), times), unix.Statfs(in("file"), &s))
	},
	"attributes of a symlink": func(in func(string) string) error {
		err := errors.Join(os.Symlink("file", in("a")), os.Lchown(in("a"), os.Getuid(), os.Getgid()))
		times := []unix.Timeval{{Sec: 1}, {Sec: 2}}
		return errors.Join(err, unix.Lutimes(in("a"), times), os.Remove(in("a")))
	},
	"extended attributes": func(in func(string) string) error {
		buf := make([]byte, 64)
		err := unix.Setxattr(in("file"), "user.a", []byte("b"), 0)
		_, get := unix.Getxattr(in("file"), "user.a", buf)
		_, list := unix.Listxattr(in("file"), buf)
		return errors.Join(err, get, list, unix.Removexattr(in("file"), "user.a"))
	},
	"allocate": func(in func(string) string) error {
		f, err := os.OpenFile(in("file"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, 4096), f.Sync(), f.Close())
	},
	"map": func(in func(string) string) error {
		f, err := os.OpenFile(in("full/file"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		data, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		data[0]++
		return unix.Munmap(data)
	},
	"lock": func(in func(string) string) error {
		f, err := os.OpenFile(in("file"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_EX), f.Close())
	},
	"hold what is removed": func(in func(string) string) error {
		f, err := os.Create(in("a"))
		if err != nil {
			return err
		}
		_, written := f.WriteString("text")
		return errors.Join(os.Remove(in("a")), written, f.Truncate(2), f.Close())
	},
	"pipe": func(in func(string) string) error {
		return errors.Join(unix.Mkfifo(in("a"), 0o600), opens(in("a"), unix.O_RDWR|unix.O_NONBLOCK), os.Remove(in("a")))
	},
	"socket": func(in func(string) string) error {
		l, err := net.Listen("unix", in("a")) // Close removes it
		if err != nil {
			return err
		}
		defer l.Close()
		c, err := net.Dial("unix", in("a"))
		if err != nil {
			return err
		}
		return c.Close()
	},
}

func opens(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// fails is nil if err is what it must be.
func fails(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("it ended with %w, not %w", err, want)
}

// repeat does an operation so many times in a folder. Without arguments it prints the
// operations' names.
func repeat(args []string) error {
	if len(args) == 0 {
		var names []string
		for name := range operations {
			names = append(names, name)
		}
		return print(names)
	}
	in := func(name string) string { return filepath.Join(args[2], name) }
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	err = errors.Join(os.WriteFile(in("file"), []byte("text"), 0o600), os.Mkdir(in("full"), 0o700), os.WriteFile(in("full/file"), make([]byte, 4096), 0o600))
	for i := 0; i < n && err == nil; i++ {
		if err = operations[args[0]](in); err != nil {
			err = fmt.Errorf("time %d: %w", i, err)
		}
	}
	return errors.Join(err, os.Remove(in("file")), os.RemoveAll(in("full")))
}
