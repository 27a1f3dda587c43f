package daemonclient

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/guest/proto"
)

const maxPath = 64 << 10 // bytes

var fileKinds = map[string]file.Kind{"other": file.Other, "file": file.Regular, "folder": file.Folder, "link": file.Link}

// file checks what a guest daemon says of a file.
func fileOf(f *proto.File) (file.Info, error) {
	if f == nil || f.Size < 0 || f.Mode > 0o7777 || len(f.Path) > maxPath || len(f.Target) > maxPath {
		return file.Info{}, fmt.Errorf("%w: a file that cannot be", ErrProtocol)
	}
	kind, ok := fileKinds[f.Kind]
	if !ok {
		return file.Info{}, fmt.Errorf("%w: a file that is a %.20q", ErrProtocol, f.Kind)
	}
	return file.Info{
		Path: string(f.Path), Kind: kind, Size: f.Size, Mode: mode(f.Mode), UID: f.UID, GID: f.GID,
		Modified: time.UnixMicro(f.Modified), Target: string(f.Target),
	}, nil
}

// bits of a mode beside permissions.
var modeBits = []struct {
	unix uint32
	mode fs.FileMode
}{{0o4000, fs.ModeSetuid}, {0o2000, fs.ModeSetgid}, {0o1000, fs.ModeSticky}}

func mode(m uint32) fs.FileMode {
	out := fs.FileMode(m & 0o777)
	for _, b := range modeBits {
		if m&b.unix != 0 {
			out |= b.mode
		}
	}
	return out
}

func unixMode(m fs.FileMode) uint32 {
	out := uint32(m.Perm())
	for _, b := range modeBits {
		if m&b.mode != 0 {
			out |= b.unix
		}
	}
	return out
}

// Stat describes what stands at a path; of a link, the link itself.
func (c *Client) Stat(ctx context.Context, path string) (file.Info, error) {
	x, r, err := c.begin(ctx, proto.Request{Stat: &proto.Path{Path: []byte(path)}})
	if err != nil {
		return file.Info{}, err
	}
	f, err := fileOf(r.File)
	if err != nil {
		return file.Info{}, x.failed(err)
	}
	x.finish()
	return f, nil
}

// List lists a folder.
func (c *Client) List(ctx context.Context, path string, o file.ListOptions) (file.Listing, error) {
	x, r, err := c.begin(ctx, proto.Request{List: &proto.List{Path: []byte(path), Depth: o.Depth, Limit: o.Limit}})
	if err != nil {
		return file.Listing{}, err
	}
	if len(r.Files) > limit(o.Limit) {
		return file.Listing{}, x.failed(fmt.Errorf("%w: %d files", ErrProtocol, len(r.Files)))
	}
	l := file.Listing{Entries: make([]file.Info, 0, len(r.Files)), Truncated: r.Truncated}
	for i := range r.Files {
		f, err := fileOf(&r.Files[i])
		if err != nil {
			return file.Listing{}, x.failed(err)
		}
		l.Entries = append(l.Entries, f)
	}
	x.finish()
	return l, nil
}

func limit(n int) int {
	if n <= 0 || n > file.MaxEntries {
		return file.MaxEntries
	}
	return n
}

// Glob returns the paths that a pattern matches: "*", "?", "[a-z]", "{a,b}", and
// "**" for any number of folders; names that begin with a dot like all others.
// A pattern that does not begin with / is for paths below cwd, and they are
// returned relative to it. At most limit are returned, MaxEntries if it is 0.
func (c *Client) Glob(ctx context.Context, cwd, pattern string, most int) (file.Paths, error) {
	x, r, err := c.begin(ctx, proto.Request{Glob: &proto.Glob{Dir: []byte(cwd), Pattern: []byte(pattern), Limit: most}})
	if err != nil {
		return file.Paths{}, err
	}
	if len(r.Paths) > limit(most) {
		return file.Paths{}, x.failed(fmt.Errorf("%w: %d paths", ErrProtocol, len(r.Paths)))
	}
	p := file.Paths{Paths: make([]string, 0, len(r.Paths)), Truncated: r.Truncated}
	for _, b := range r.Paths {
		if len(b) == 0 || len(b) > maxPath {
			return file.Paths{}, x.failed(fmt.Errorf("%w: a path that cannot be", ErrProtocol))
		}
		p.Paths = append(p.Paths, string(b))
	}
	x.finish()
	return p, nil
}

// Mkdir makes a folder and those above it. One that is there already will do.
func (c *Client) Mkdir(ctx context.Context, path string) error {
	_, err := c.call(ctx, proto.Request{Mkdir: &proto.Path{Path: []byte(path)}})
	return err
}

// Remove removes a file, a link or an empty folder; with all below it if recursive.
func (c *Client) Remove(ctx context.Context, path string, recursive bool) error {
	_, err := c.call(ctx, proto.Request{Remove: &proto.Remove{Path: []byte(path), Recursive: recursive}})
	return err
}

// Move renames a file or folder, also to another file system. What has the new
// name is replaced only if replace says so.
func (c *Client) Move(ctx context.Context, from, to string, replace bool) error {
	_, err := c.call(ctx, proto.Request{Move: &proto.Move{From: []byte(from), To: []byte(to), Replace: replace}})
	return err
}

// Read returns a file's content from offset on, at most limit bytes of it, or all
// if limit is negative. Links are followed. ctx is for reading it, too.
func (c *Client) Read(ctx context.Context, path string, offset, limit int64) (file.Info, io.ReadCloser, error) {
	x, r, err := c.begin(ctx, proto.Request{Read: &proto.Read{Path: []byte(path), Offset: offset, Limit: max(limit, -1)}})
	if err != nil {
		return file.Info{}, nil, err
	}
	f, err := fileOf(r.File)
	if err != nil {
		return file.Info{}, nil, x.failed(err)
	}
	x.limitContent()
	return f, newContent(x, limit), nil
}

// Create writes a file and makes the folders above it, and returns the size that
// the file has then. Unless it appends, the file is new and takes its place at
// once, when all of it is written; a link is followed, and replaced what it leads to.
func (c *Client) Create(ctx context.Context, path string, o file.CreateOptions, content io.Reader) (size int64, err error) {
	r, err := c.send(ctx, proto.Request{Create: &proto.Create{Path: []byte(path), Append: o.Append, Mode: unixMode(o.Mode)}}, content)
	if err != nil {
		return 0, err
	}
	if r.Size < 0 {
		err := fmt.Errorf("%w: a file of %d bytes", ErrProtocol, r.Size)
		c.fail(err)
		return 0, err
	}
	return r.Size, nil
}

// Pack returns a file, or a folder with all below it, as a tar stream, with modes,
// links and times. The entry of path itself is named ".". ctx is for reading it, too.
func (c *Client) Pack(ctx context.Context, path string) (file.Archive, error) {
	x, _, err := c.begin(ctx, proto.Request{Pack: &proto.Path{Path: []byte(path)}})
	if err != nil {
		return nil, err
	}
	x.limitContent()
	return &Archive{newContent(x, -1)}, nil
}

// Unpack writes a tar stream to path, which is the name that the entry "." gets,
// and below which all others go: no entry leads out of it, whatever links there
// are. Folders that are there stay and are added to; files are replaced.
func (c *Client) Unpack(ctx context.Context, path string, archive io.Reader) (file.Counts, error) {
	r, err := c.send(ctx, proto.Request{Unpack: &proto.Path{Path: []byte(path)}}, archive)
	if err != nil {
		return file.Counts{}, err
	}
	if r.Count < 0 || r.Size < 0 {
		err := fmt.Errorf("%w: %d files of %d bytes", ErrProtocol, r.Count, r.Size)
		c.fail(err)
		return file.Counts{}, err
	}
	return file.Counts{Files: r.Count, Bytes: r.Size}, nil
}

// PutSkills writes a tar stream below the folder of skills, as root's files.
func (c *Client) PutSkills(ctx context.Context, archive io.Reader) error {
	_, err := c.send(ctx, proto.Request{Skills: &proto.Empty{}}, archive)
	return err
}

// Archive is a tar stream.
type Archive struct{ *content }

// Counts says what was packed, once Read has returned io.EOF.
func (a *Archive) Counts() file.Counts {
	return file.Counts{Files: a.body.End.Files, Bytes: a.body.End.Bytes}
}

// content is what comes after an answer.
type content struct {
	x    *exchange
	body proto.Content
	left int64 // bytes that may come, negative for any number
	closing
	err error
}

func newContent(x *exchange, limit int64) *content {
	return &content{x: x, body: proto.Content{Conn: x.Conn}, left: limit, closing: closing{x: x}}
}

func (c *content) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.body.Read(p)
	if c.left >= 0 {
		if int64(n) > c.left {
			n, err = 0, fmt.Errorf("%w: more than was asked for", ErrProtocol)
		}
		c.left -= int64(n)
	}
	switch {
	case err == nil:
		return n, nil
	case err != io.EOF:
		c.err = c.finish(func() error { return c.x.failed(err) })
	case c.body.End.Error != nil:
		c.err = c.finish(func() error { c.x.finish(); return refusal(c.body.End.Error) })
	case c.body.End.Files < 0 || c.body.End.Bytes < 0:
		c.err = c.finish(func() error { return c.x.failed(fmt.Errorf("%w: counts that cannot be", ErrProtocol)) })
	default:
		c.err = c.finish(func() error { c.x.finish(); return io.EOF })
	}
	return n, c.err
}
