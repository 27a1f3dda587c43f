package filetool

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/filetool"
)

// maxFile bounds a file that is changed, in bytes: it is held in memory.
const maxFile = 16 << 20

// regular opens a file that is one, whatever link leads to it.
func regular(path string) (*os.File, os.FileInfo, error) {
	st, err := os.Stat(path) // a pipe must not be opened
	if err != nil {
		return nil, nil, err
	}
	switch {
	case st.IsDir():
		return nil, nil, refuse("%s is a folder; name a file", path)
	case !st.Mode().IsRegular():
		return nil, nil, refuse("%s is no regular file", path)
	}
	f, err := os.Open(path)
	return f, st, err
}

// content reads a file that is to be changed.
func content(path string) ([]byte, error) {
	f, st, err := regular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st.Size() <= maxFile {
		b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
		if err != nil || len(b) <= maxFile {
			return b, err
		}
	}
	return nil, refuse("%s has more than %d MiB; change it with run_code", path, maxFile>>20)
}

// put writes a file. One that is there keeps its mode, and has its old content until it has
// all of the new one, where the folder lets that be.
func put(path string, data []byte) (created bool, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	st, err := os.Stat(path)
	switch {
	case err == nil && st.IsDir():
		return false, refuse("%s is a folder; name a file", path)
	case err == nil && !st.Mode().IsRegular():
		return false, refuse("%s is no regular file", path)
	case err != nil:
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return false, err
		}
		return true, os.WriteFile(path, data, 0o644)
	}
	beside, err := os.CreateTemp(filepath.Dir(path), ".atoll-*")
	if err != nil {
		return false, os.WriteFile(path, data, 0o644)
	}
	_, err = beside.Write(data)
	err = cmp.Or(err, beside.Chmod(st.Mode().Perm()), beside.Close())
	if err == nil {
		err = os.Rename(beside.Name(), path)
	}
	if err != nil {
		_ = os.Remove(beside.Name())
	}
	return false, err
}

func write(c *filetool.Call) (*filetool.Answer, error) {
	if c.Path == "" || strings.HasSuffix(c.Path, "/") {
		return nil, refuse("%q names no file", c.Path)
	}
	created, err := put(c.Path, []byte(c.Content))
	return &filetool.Answer{Bytes: int64(len(c.Content)), Created: created}, err
}

func edit(c *filetool.Call) (*filetool.Answer, error) {
	was, err := content(c.Path)
	if err != nil {
		return nil, err
	}
	old, new := []byte(c.Old), []byte(c.New)
	n := 0
	if len(old) > 0 {
		n = bytes.Count(was, old)
	}
	switch {
	case len(old) == 0:
		return nil, refuse("old_string is empty; write_file makes a file")
	case bytes.Equal(old, new):
		return nil, refuse("old_string and new_string are the same")
	case n == 0 && bytes.Contains(was, []byte("\r\n")) && !bytes.Contains(old, []byte("\r\n")) && bytes.Contains(old, []byte("\n")):
		return nil, refuse("old_string is not in %s. Its lines end with \\r\\n", c.Path)
	case n == 0:
		return nil, refuse("old_string is not in %s. It must be there exactly, with its spaces and line ends: read the file again", c.Path)
	case n > 1 && !c.All:
		return nil, refuse("old_string is in %s %d times, in lines %s. Give more of what is around it, or set replace_all", c.Path, n, places(was, old))
	}
	if size := len(was) + n*(len(new)-len(old)); size > maxFile {
		return nil, refuse("%s would have more than %d MiB", c.Path, maxFile>>20)
	}
	is := bytes.ReplaceAll(was, old, new)
	_, err = put(c.Path, is)
	return &filetool.Answer{Bytes: int64(len(is)), Count: int64(n)}, err
}

// places are the lines of the first places where old is.
func places(b, old []byte) string {
	const most = 10
	var lines []string
	for at, line := 0, 1; ; {
		i := bytes.Index(b[at:], old)
		if i < 0 {
			return strings.Join(lines, ", ")
		}
		if len(lines) == most {
			return strings.Join(lines, ", ") + " and others"
		}
		line += bytes.Count(b[at:at+i], []byte("\n"))
		lines = append(lines, strconv.Itoa(line))
		line += bytes.Count(old, []byte("\n"))
		at += i + len(old)
	}
}

// share makes sure that a file can be collected.
func share(c *filetool.Call) (*filetool.Answer, error) {
	if c.Beside != "" {
		if err := os.Remove(c.Beside); err != nil && !os.IsNotExist(err) { // the last one that was shared
			return nil, err
		}
	}
	real, err := filepath.EvalSymlinks(c.Path)
	if err != nil {
		return nil, err
	}
	f, st, err := regular(real)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a := &filetool.Answer{Bytes: st.Size()}
	switch {
	case st.Size() > filetool.MaxShared:
		return nil, refuse("%s has %d bytes; a file that is shared has at most %d", c.Path, st.Size(), filetool.MaxShared)
	case c.Beside == "":
		// What collects it follows no links.
		if here, err := os.Lstat(c.Path); err != nil || !here.Mode().IsRegular() {
			return nil, refuse("%s is a link; share %s", c.Path, real)
		}
		return a, nil
	}
	if err := os.MkdirAll(filepath.Dir(c.Beside), 0o755); err != nil {
		return nil, err
	}
	if os.Link(real, c.Beside) == nil {
		return a, nil
	}
	to, err := os.OpenFile(c.Beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(to, io.LimitReader(f, filetool.MaxShared+1))
	return a, cmp.Or(err, to.Close())
}
