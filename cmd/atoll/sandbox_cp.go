package main

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (s *sandboxes) cp() *cobra.Command {
	cmd := s.command("cp FROM TO", "Copy files into a sandbox, out of one, or from one to another", `  atoll sandbox cp ./src builder:src
  atoll sandbox cp builder:/home/user/app/dist ./dist
  atoll sandbox cp builder:src tester:
  atoll sandbox cp - builder:data.csv < data.csv`, cobra.ExactArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			from, fromPath, out := splitRemote(args[0])
			to, toPath, in := splitRemote(args[1])
			switch {
			case in && out:
				return s.copyAcross(ctx, c, s.at(from), fromPath, s.at(to), toPath)
			case in:
				return s.copyIn(ctx, c, fromPath, s.at(to), toPath)
			case out:
				return s.copyOut(ctx, c, s.at(from), fromPath, toPath)
			}
			return wrong("one of FROM and TO must be in a sandbox, as NAME:PATH")
		})
	cmd.Long = `Copy a file, or a folder with its contents. NAME:PATH is a path in a sandbox,
relative to /home/user unless it begins with a slash. TO is the name of the copy,
or its folder if TO ends in a slash or is a folder. When copying out of a sandbox,
the command follows a link as TO only if it ends in a slash, and does not copy
links. - is stdin or stdout.`
	cmd.ValidArgsFunction = s.completePlace
	return cmd
}

// completePlace completes the names of sandboxes, as cp has them, and files here.
func (s *sandboxes) completePlace(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var found []string
	if len(args) < 2 && !strings.Contains(typed, ":") {
		for _, name := range s.names(cmd.Context(), s.sandboxNames, nil) {
			if strings.HasPrefix(name, typed) {
				found = append(found, name+":")
			}
		}
	}
	if len(found) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return found, cobra.ShellCompDirectiveNoSpace
}

// splitRemote reads NAME:PATH; ok is false for a path of this machine.
func splitRemote(arg string) (name, at string, ok bool) {
	name, at, ok = strings.Cut(arg, ":")
	if !ok || name == "" || strings.Contains(name, "/") {
		return "", arg, false
	}
	return name, at, true
}

func (s *sandboxes) copyIn(ctx context.Context, c *sdk.Client, from string, at sdk.SandboxRef, to string) error {
	if from == "-" {
		_, err := c.SandboxFiles(at).Write(ctx, to, 0o644, s.app.std.in)
		return err
	}
	to, err := s.inFolder(ctx, c, at, to, filepath.Base(from))
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeNamedPipe != 0 { // which may wait for ever to be opened, and not hear of Ctrl-C
		return fmt.Errorf("%s is a pipe: use - as FROM, and redirect the pipe to stdin", from)
	}
	if !info.IsDir() {
		in, err := os.Open(from)
		if err != nil {
			return err
		}
		defer in.Close()
		return copyFileIn(ctx, c, in, info, at, to)
	}
	r, w := io.Pipe()
	defer r.Close()
	go func() { w.CloseWithError(packFolder(w, from)) }()
	_, err = c.SandboxFiles(at).Unpack(ctx, to, r)
	return err
}

// copyFileIn copies a file with its time. Like a write it replaces a file at once, and writes
// to where a link leads.
func copyFileIn(ctx context.Context, c *sdk.Client, in io.Reader, info fs.FileInfo, at sdk.SandboxRef, to string) error {
	there, err := c.SandboxFiles(at).Stat(ctx, to)
	if !info.Mode().IsRegular() || info.Size() == 0 || err == nil && there.Kind != "file" {
		// A device, or a file of /proc, whose size is not known; or a link.
		_, err := c.SandboxFiles(at).Write(ctx, to, uint32(info.Mode().Perm()), in)
		return err
	}
	r, w := io.Pipe()
	defer r.Close()
	go func() { w.CloseWithError(packFile(w, in, info)) }()
	if err != nil { // there is nothing in the way, or the copy finds out what is
		_, err := c.SandboxFiles(at).Unpack(ctx, to, r)
		return err
	}
	beside := path.Join(path.Dir(to), ".atoll-"+rand.Text())
	if _, err = c.SandboxFiles(at).Unpack(ctx, beside, r); err == nil {
		_, err = c.SandboxFiles(at).Move(ctx, beside, to, true)
	}
	if err != nil {
		_ = c.SandboxFiles(at).Delete(context.WithoutCancel(ctx), beside, false) // it may never have been made
	}
	return err
}

// inFolder is the path that a copy gets in a sandbox, where base is the name of
// what is copied: to, or a path in it if that is a folder.
func (s *sandboxes) inFolder(ctx context.Context, c *sdk.Client, at sdk.SandboxRef, to, base string) (string, error) {
	if to == "" || strings.HasSuffix(to, "/") {
		return to + base, nil
	}
	there, err := c.SandboxFiles(at).Stat(ctx, to)
	if refused, ok := errors.AsType[*sdk.Error](err); ok && refused.Status == http.StatusNotFound {
		return to, nil // also where there is no sandbox, which the copy finds out
	}
	if err == nil && there.Kind == "directory" {
		return path.Join(to, base), nil
	}
	return to, err
}

// copyAcross copies from one sandbox to another, through this process.
func (s *sandboxes) copyAcross(ctx context.Context, c *sdk.Client, fromAt sdk.SandboxRef, from string, toAt sdk.SandboxRef, to string) error {
	if from == "" {
		from = "." // its home
	}
	to, err := s.inFolder(ctx, c, toAt, to, path.Base(from))
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	defer r.Close()
	read := make(chan error, 1)
	go func() {
		err := c.SandboxFiles(fromAt).Pack(ctx, from, w)
		w.CloseWithError(err)
		read <- err
	}()
	_, err = c.SandboxFiles(toAt).Unpack(ctx, to, r)
	_ = r.Close() // a copy that was refused is not read on
	if failed := <-read; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return failed // which is why the other side failed, too
	}
	return err
}

// packFile writes a file as a tar archive, in which it is called ".".
func packFile(w io.Writer, in io.Reader, info fs.FileInfo) error {
	out := tar.NewWriter(w)
	head, err := entry(info, ".", "")
	if err != nil {
		return err
	}
	if err := out.WriteHeader(head); err != nil {
		return err
	}
	_, err = io.CopyN(out, in, head.Size)
	return errors.Join(err, out.Close())
}

// entry begins an entry of an archive, with its time to the nanosecond.
func entry(info fs.FileInfo, name, target string) (*tar.Header, error) {
	head, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return nil, err
	}
	head.Name, head.Uname, head.Gname, head.Uid, head.Gid = name, "", "", 0, 0
	head.Format, head.AccessTime, head.ChangeTime = tar.FormatPAX, time.Time{}, time.Time{}
	return head, nil
}

// packFolder writes a folder as a tar archive, in which it is called ".".
func packFolder(w io.Writer, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	out := tar.NewWriter(w)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := root.Lstat(name)
		if err != nil {
			return err
		}
		target := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			if target, err = root.Readlink(name); err != nil {
				return err
			}
		case !info.IsDir() && !info.Mode().IsRegular():
			return nil // a socket, a pipe, a device
		}
		head, err := entry(info, name, target)
		if err != nil {
			return err
		}
		if err := out.WriteHeader(head); err != nil || !info.Mode().IsRegular() {
			return err
		}
		in, err := root.Open(name)
		if err != nil {
			return err
		}
		defer in.Close()
		_, err = io.CopyN(out, in, head.Size)
		return err
	})
	return errors.Join(err, out.Close())
}

func (s *sandboxes) copyOut(ctx context.Context, c *sdk.Client, at sdk.SandboxRef, from, to string) error {
	if from == "" {
		from = "." // NAME: is its home, as it is in the other direction
	}
	if to == "-" {
		return c.SandboxFiles(at).Read(ctx, from, s.app.std.out)
	}
	to = copiedTo(from, to)
	r, w := io.Pipe()
	defer r.Close()
	go func() { w.CloseWithError(c.SandboxFiles(at).Pack(ctx, from, w)) }()
	return unpack(r, to)
}

// copiedTo is the name on this machine that a copy gets which is asked for at a path.
func copiedTo(from, to string) string {
	// A link is not followed unless a slash asks for it, because an earlier copy may have
	// planted it.
	if strings.HasSuffix(to, "/") {
		if at, err := filepath.EvalSymlinks(to); err == nil {
			to = at
		}
		to = filepath.Join(to, path.Base(from))
	} else if info, err := os.Lstat(to); err == nil && info.IsDir() {
		to = filepath.Join(to, path.Base(from))
	}
	return to
}

// unpack writes a tar archive, whose entry "." is what gets the name to. No entry
// leads out of that, whatever links there are: a sandbox is not trusted.
func unpack(r io.Reader, to string) error {
	in := tar.NewReader(r)
	parent, err := os.OpenRoot(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer parent.Close()
	root, whole := parent, false // there was an entry that is all of it, and no folder
	var folders []*tar.Header    // get their times when all that goes into them is there
	for {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			for _, head := range slices.Backward(folders) {
				if err := root.Chtimes(path.Clean(head.Name), head.ModTime, head.ModTime); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(head.Name)
		if whole {
			return fmt.Errorf("the archive has an unexpected entry %q after its last one", head.Name)
		}
		if name == "." {
			name = filepath.Base(to)
			switch head.Typeflag {
			case tar.TypeSymlink, tar.TypeLink: // the next copy to this name would be led elsewhere
				return fmt.Errorf("the source is a link to %q: copy its target instead", head.Linkname)
			case tar.TypeDir:
				if err := parent.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
					return err
				}
				if info, err := parent.Lstat(name); err != nil || !info.IsDir() {
					return cmp.Or(err, fmt.Errorf("%s exists and is not a folder. If it is a link that you trust, pass %s/ to copy into the folder it points to; otherwise remove it", to, to))
				}
				if root, err = parent.OpenRoot(name); err != nil {
					return err
				}
				defer root.Close()
				folders = append(folders, head)
				continue
			}
			whole = true
		} else if root == parent {
			return fmt.Errorf("the archive lists %q before its folder", head.Name)
		}
		if err := unpackEntry(root, name, head, in); err != nil {
			return err
		}
		if head.Typeflag == tar.TypeDir {
			folders = append(folders, head)
		}
	}
}

func unpackEntry(root *os.Root, name string, head *tar.Header, in io.Reader) error {
	mode := head.FileInfo().Mode().Perm()
	switch head.Typeflag {
	case tar.TypeDir:
		if err := root.Mkdir(name, mode|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	case tar.TypeReg, tar.TypeSymlink, tar.TypeLink:
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	default:
		return nil // a pipe, a device
	}
	switch head.Typeflag {
	case tar.TypeSymlink:
		return root.Symlink(head.Linkname, name)
	case tar.TypeLink:
		return root.Link(path.Clean(head.Linkname), name)
	}
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return root.Chtimes(name, head.ModTime, head.ModTime)
}
