package tools

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// MaxRead limits the bytes that one read_file returns, before encoding.
const MaxRead = 8 << 20

// maxWhole is the largest whole number below which every JSON reader holds all.
const maxWhole = 1 << 53

const inBase64 = "base64"

func readFile(ctx context.Context, c *call, in *ReadFileInput) (*ReadFileOutput, error) {
	offset, limit, err := window(in)
	if err != nil {
		return nil, err
	}
	c.row.Command = []byte(*in.Path)
	var out *ReadFileOutput
	err = c.use(ctx, *in.Sandbox, func(h sandbox.Handle) error {
		info, body, err := h.Guest().Read(ctx, *in.Path, offset, limit)
		if err != nil {
			return err
		}
		defer body.Close()
		content, err := io.ReadAll(io.LimitReader(body, limit))
		if err != nil {
			return err
		}
		size := info.Size
		end := offset + int64(len(content))
		out = &ReadFileOutput{Size: size, Truncated: in.Limit == nil && end < size}
		if len(content) > 0 { // what /proc has is larger than it says
			out.Size = max(size, end)
		}
		if in.Encoding != nil && *in.Encoding == inBase64 || in.Encoding == nil && !isText(content, offset > 0, end < out.Size) {
			out.Content, out.Encoding = base64.StdEncoding.EncodeToString(content), inBase64
			return nil
		}
		covers, err := h.Redactor(ctx)
		if err != nil {
			return err
		}
		out.Content = text(covers.Bytes(content))
		return nil
	})
	return out, err
}

// window is which bytes of a file are asked for.
func window(in *ReadFileInput) (offset, limit int64, err error) {
	limit = MaxRead
	if in.Offset != nil {
		if offset, err = integer("offset", in.Offset, 0, maxWhole); err != nil {
			return 0, 0, err
		}
	}
	if in.Limit != nil {
		limit, err = integer("limit", in.Limit, 0, MaxRead)
	}
	return offset, limit, err
}

// isText reports whether p is UTF-8, but for characters that the window which p
// is of has cut in two.
func isText(p []byte, before, after bool) bool {
	if before {
		for n := 0; n < utf8.UTFMax-1 && len(p) > 0 && !utf8.RuneStart(p[0]); n++ {
			p = p[1:]
		}
	}
	if after {
		p = whole(p)
	}
	return utf8.Valid(p)
}

func writeFile(ctx context.Context, c *call, in *WriteFileInput) (*WriteFileOutput, error) {
	content := *in.Content
	if *in.Encoding == inBase64 {
		raw, err := base64.StdEncoding.DecodeString(content)
		if err != nil {
			return nil, invalid("content is not valid base64")
		}
		content = string(raw)
	}
	c.row.Command = []byte(*in.Path)
	out := &WriteFileOutput{OK: true}
	return out, c.use(ctx, *in.Sandbox, func(h sandbox.Handle) (err error) {
		out.Size, err = h.Guest().Create(ctx, *in.Path, file.CreateOptions{Append: *in.Append}, strings.NewReader(content))
		return err
	})
}

func glob(ctx context.Context, c *call, in *GlobInput) (*GlobOutput, error) {
	c.row.Command = []byte(*in.Pattern)
	out := &GlobOutput{Files: []string{}}
	return out, c.use(ctx, *in.Sandbox, func(h sandbox.Handle) error {
		covers, err := h.Redactor(ctx)
		if err != nil {
			return err
		}
		found, err := h.Guest().Glob(ctx, *in.Cwd, *in.Pattern, 0)
		for _, at := range found.Paths {
			if at == "." { // ** is for any number of folders, and so for none
				continue
			}
			at = string(covers.Bytes([]byte(at))) // a program chooses the names of files
			out.Files = append(out.Files, text([]byte(at)))
			if !utf8.ValidString(at) {
				out.Quoted = append(out.Quoted, quoted(at))
			}
		}
		out.Truncated = found.Truncated
		return err
	})
}

// quoted writes a name as bash reads it, whatever bytes it has.
func quoted(name string) string {
	out := []byte("$'")
	for _, c := range []byte(name) {
		if c < ' ' || c > '~' || c == '\'' || c == '\\' {
			out = fmt.Appendf(out, "\\%03o", c)
		} else {
			out = append(out, c)
		}
	}
	return string(append(out, '\''))
}

func transfer(ctx context.Context, c *call, in *TransferInput) (*TransferOutput, error) {
	c.row.Command = fmt.Appendf(nil, "%q %q %q %q", *in.FromSandbox, *in.FromPath, *in.ToSandbox, *in.ToPath)
	// Nothing could be copied from one that is yet to be made.
	from, err := c.find(ctx, *in.FromSandbox)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	out := &TransferOutput{OK: true}
	return out, c.use(ctx, *in.ToSandbox, func(to sandbox.Handle) (err error) {
		c.row.Annotate("from_sandbox_id", string(from.Sandbox().ID))
		if from.Sandbox().ID == to.Sandbox().ID {
			if err := apart(ctx, to.Guest(), *in.FromPath, *in.ToPath); err != nil {
				return err
			}
		}
		out.Bytes, err = carry(ctx, from, *in.FromPath, to, *in.ToPath, *in.Recursive)
		return err
	})
}

// apart refuses to copy something onto or into itself, be it by way of links.
func apart(ctx context.Context, guest sandbox.Guest, from, to string) error {
	source, err := destination(ctx, guest, from)
	if err != nil {
		return err
	}
	into, err := destination(ctx, guest, to)
	if err != nil {
		return err
	}
	// A link that stands there may be replaced.
	folder, err := destination(ctx, guest, path.Dir(strings.TrimRight(to, "/")))
	if err != nil {
		return err
	}
	for _, at := range []string{into, path.Join(folder, path.Base(to))} {
		if at == source || strings.HasPrefix(at, strings.TrimSuffix(source, "/")+"/") {
			return invalid("cannot copy a folder into itself: to_path is from_path or inside it")
		}
	}
	return nil
}

// destination is where a path leads in a sandbox, all links followed. What is not
// there, or cannot be looked at, is taken as the path says it.
func destination(ctx context.Context, guest sandbox.Guest, at string) (string, error) {
	if !path.IsAbs(at) {
		at = home + "/" + at
	}
	done, rest, links := "/", strings.Split(at, "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		switch rest = rest[1:]; name {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, name)
		info, err := guest.Stat(ctx, next)
		if _, told := errors.AsType[*fault.Error](err); err != nil && !told {
			return "", err
		}
		if err != nil || links == maxLinks {
			return path.Join(next, path.Join(rest...)), nil
		}
		if info.Kind != file.Link {
			done = next
			continue
		}
		links++
		if path.IsAbs(info.Target) {
			done = "/"
		}
		rest = append(strings.Split(info.Target, "/"), rest...)
	}
	return done, nil
}

// maxLinks is how many links a path may lead by, as kernels have it.
const maxLinks = 40

const home = "/home/user"

// carry copies a file or a tree from one sandbox to another, and returns the
// bytes of the files' content. A link that is named itself is followed; those
// in a tree are kept.
func carry(ctx context.Context, from sandbox.Handle, fromPath string, to sandbox.Handle, toPath string, recursive bool) (int64, error) {
	guest := from.Guest()
	info, err := guest.Stat(ctx, fromPath)
	if err != nil {
		return 0, err
	}
	if info.Kind == file.Link {
		behind := strings.TrimRight(fromPath, "/") + "/."
		if _, err := guest.Stat(ctx, behind); err != nil { // it leads to no folder
			at, err := destination(ctx, guest, fromPath)
			if err != nil {
				return 0, err
			}
			if behind, err := guest.Stat(ctx, at); err != nil || behind.Kind != file.Regular || behind.Size == 0 {
				return carryFile(ctx, guest, fromPath, to.Guest(), toPath) // such as one of /proc, whose size is not known
			}
			info.Kind, fromPath = file.Regular, at
		} else {
			info.Kind, fromPath = file.Folder, behind
		}
	}
	if info.Kind == file.Folder && !recursive {
		return 0, invalid("%s is a folder: set recursive to copy it and its contents", fromPath)
	}
	if info.Kind == file.Folder {
		at, err := destination(ctx, guest, fromPath)
		if err != nil {
			return 0, err
		}
		if n, done, err := from.CopyFolder(ctx, at, to, toPath); done || err != nil {
			return n, err
		}
	}
	archive, err := guest.Pack(ctx, fromPath)
	if err != nil {
		return 0, err
	}
	defer archive.Close()
	counts, err := to.Guest().Unpack(ctx, toPath, archive)
	return counts.Bytes, err
}

// carryFile copies what is read at a path.
func carryFile(ctx context.Context, from sandbox.Guest, fromPath string, to sandbox.Guest, toPath string) (int64, error) {
	info, body, err := from.Read(ctx, fromPath, 0, -1)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return to.Create(ctx, toPath, file.CreateOptions{Mode: info.Mode.Perm()}, body)
}
