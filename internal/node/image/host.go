package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// merged are the folders that are links into /usr on a machine whose / and
// /usr are merged, and hold programs and libraries on any other.
var merged = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// empty are folders that the sandbox mounts over or its user writes to.
var empty = []string{"proc", "sys", "dev", "run", "var/tmp", "var/log", "var/cache", "root", strings.TrimPrefix(runtime.GuestDir, "/")}

// fromEtc are the files of this machine's /etc that programs need and that
// tell nothing of it: where libraries lie, names of services, certificates of
// authorities, which of several programs is the default.
var fromEtc = []string{
	"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
	"protocols", "services", "mime.types", "magic",
	"ssl/certs", "ssl/openssl.cnf", "ca-certificates.conf", "pki/tls/certs", "pki/ca-trust/extracted",
	"fonts", "debian_version", "os-release", "python3", "localtime",
}

// ownEtc are files of /etc that every host image has.
var ownEtc = map[string]string{
	"passwd":        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	"group":         "root:x:0:\nnogroup:x:65534:\n",
	"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
	"hosts":         "127.0.0.1 localhost atoll\n::1 localhost\n",
	"hostname":      "atoll\n",
	"resolv.conf":   "",
	"machine-id":    "",
}

// hostPath is where the host image's interpreters are looked for.
const hostPath = "/usr/local/bin:/usr/bin"

// Host returns the image that shows this machine's own /usr, read-only, for
// when no other can be had. Home folders, /root and the machine's
// configuration are not in it. probe tells the interpreters' versions; nil
// leaves them unknown.
//
// The image's small folder of everything but /usr is made anew when the
// machine has changed and no sandbox uses the old one.
func (s *Store) Host(ctx context.Context, probe Probe) (_ *Image, err error) {
	temp, undo, err := s.temp()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, undo()) }()

	tree := filepath.Join(temp, treeDir)
	binds, err := skeleton(tree)
	if err != nil {
		return nil, fmt.Errorf("make host image: %w", err)
	}
	img := &Image{
		Name: HostName, Source: "this machine's /usr", Created: time.Now().UTC().Truncate(time.Second),
		Env:    map[string]string{"PATH": runtime.Home + "/.local/bin:" + defaultPath, "LANG": "C.UTF-8"},
		Rootfs: runtime.Rootfs{Tree: tree, Binds: binds},
	}
	img.Interpreters = search(hostPath, hostExecutable)
	if probe != nil {
		if img.Interpreters, err = examine(ctx, probe, img.Rootfs, img.Interpreters, nil, nil); err != nil {
			return nil, err
		}
	}
	if img.Digest, err = hostDigest(tree, img); err != nil {
		return nil, fmt.Errorf("make host image: %w", err)
	}
	if old, err := s.Get(HostName); err == nil && old.Digest == img.Digest {
		return old, nil
	}
	if err := writeRecord(temp, img); err != nil {
		return nil, err
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return nil, err
	}
	if err := s.publish(temp, HostName, true); err != nil && fault.KindOf(err) != fault.Conflict {
		return nil, err
	}
	return s.Get(HostName)
}

// skeleton makes everything but /usr in folder dir and returns what to bind.
func skeleton(dir string) ([]runtime.Bind, error) {
	home := strings.TrimPrefix(runtime.Home, "/")
	for _, name := range append([]string{"usr", "etc", "tmp", home}, empty...) {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, err
		}
	}
	binds, err := usrBinds(dir)
	if err != nil {
		return nil, err
	}
	if err := fillEtc(filepath.Join(dir, "etc")); err != nil {
		return nil, err
	}
	if err := readable(dir); err != nil {
		return nil, err
	}
	if err := os.Chmod(filepath.Join(dir, "tmp"), 0o777|fs.ModeSticky); err != nil {
		return nil, err
	}
	if err := os.Chown(filepath.Join(dir, home), runtime.UID, runtime.GID); err != nil {
		// Without the right to give files away, anyone in the sandbox may
		// write there: it has but one user.
		return binds, os.Chmod(filepath.Join(dir, home), 0o777)
	}
	return binds, nil
}

// readable gives folders and files the modes they were made with, whatever
// the process's umask.
func readable(dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.Chmod(p, 0o755)
		case d.Type().IsRegular():
			return os.Chmod(p, 0o644)
		}
		return nil
	})
}

// usrBinds makes the links of a merged /usr in folder dir and returns the
// folders to show, /usr first.
func usrBinds(dir string) ([]runtime.Bind, error) {
	binds := []runtime.Bind{{Source: "/usr", Target: "/usr"}}
	for _, name := range merged {
		target, err := os.Readlink("/" + name)
		if err == nil {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				return nil, err
			}
			continue
		}
		if info, err := os.Stat("/" + name); err == nil && info.IsDir() {
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				return nil, err
			}
			binds = append(binds, runtime.Bind{Source: "/" + name, Target: "/" + name})
		}
	}
	return binds, nil
}

// fillEtc makes the skeleton's /etc.
func fillEtc(etc string) error {
	for _, name := range fromEtc {
		if err := copyTree(filepath.Join("/etc", name), filepath.Join(etc, name)); err != nil {
			return err
		}
	}
	for name, text := range ownEtc {
		switch name {
		case "passwd":
			text += fmt.Sprintf("user:x:%d:%d::%s:/bin/sh\n", runtime.UID, runtime.GID, runtime.Home)
		case "group":
			text += fmt.Sprintf("user:x:%d:\n", runtime.GID)
		}
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies what any user of this machine may read: files, folders and,
// as they are, symbolic links. Anything else, and what is missing, is left out.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		out := filepath.Join(to, rel)
		switch {
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			if err != nil {
				return nil
			}
			if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
				return err
			}
			return os.Symlink(target, out)
		case info.Mode().Perm()&0o004 == 0:
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(out, 0o755)
		case d.Type().IsRegular():
			if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
				return err
			}
			data, err := os.ReadFile(p)
			if err != nil {
				return nil
			}
			return os.WriteFile(out, data, 0o644)
		default:
			return nil
		}
	})
}

// hostExecutable reports whether p is a program whose every link on the way
// stays in what the host image shows.
func hostExecutable(p string) bool {
	for range 40 {
		if !slices.ContainsFunc([]string{"/usr/", "/etc/alternatives/"}, func(prefix string) bool { return strings.HasPrefix(p, prefix) }) {
			return false
		}
		info, err := os.Lstat(p)
		if err != nil {
			return false
		}
		if info.Mode().Type() != fs.ModeSymlink {
			return info.Mode().IsRegular() && info.Mode().Perm()&0o001 != 0
		}
		target, err := os.Readlink(p)
		if err != nil {
			return false
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(p), target)
		}
		if p = path.Clean(target); !strings.HasPrefix(p, "/usr/") && slices.Contains(merged, strings.Split(p, "/")[1]) {
			p = "/usr" + p
		}
	}
	return false
}

// hostDigest is a digest of a host image: its folder and its interpreters.
func hostDigest(tree string, img *Image) (string, error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode([]any{img.Interpreters, img.Env, img.Rootfs.Binds}); err != nil {
		return "", err
	}
	err := filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(tree, p)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v", rel, info.Mode())
		switch {
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, " %q", target)
		case d.Type().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, " %d ", len(data))
			h.Write(data)
		}
		fmt.Fprintln(h)
		return nil
	})
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), err
}
