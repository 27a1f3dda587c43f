package sandboxes

import (
	"context"
	"io"

	"github.com/atoll-run/atoll/internal/core/file"
)

// Content is a file that is being read. Close its Body.
type Content struct {
	file.Info
	// Body reads any part of the file. A file in /proc is larger than its Size: read such a
	// file with Begun, before any use of Body.
	Body  *file.Seekable
	Begun io.Reader
}

// ReadFile opens a file.
func (u *Use) ReadFile(ctx context.Context, path string) (*Content, error) {
	info, begun, err := u.Guest().Read(ctx, path, 0, -1)
	if err != nil {
		return nil, err
	}
	return &Content{info, file.NewSeekable(info.Size, begun, func(offset int64) (io.ReadCloser, error) {
		_, content, err := u.Guest().Read(ctx, path, offset, -1)
		return content, err
	}), begun}, nil
}

// WriteFile writes a file and returns its description.
func (u *Use) WriteFile(ctx context.Context, path string, o file.CreateOptions, content io.Reader) (file.Info, error) {
	if _, err := u.Guest().Create(ctx, path, o, content); err != nil {
		return file.Info{}, err
	}
	return u.Guest().Stat(ctx, path)
}

// MakeFolder creates a folder and those above it, and returns its description.
func (u *Use) MakeFolder(ctx context.Context, path string) (file.Info, error) {
	if err := u.Guest().Mkdir(ctx, path); err != nil {
		return file.Info{}, err
	}
	return u.Guest().Stat(ctx, path)
}

// MoveFile renames a file or folder, and returns its description.
func (u *Use) MoveFile(ctx context.Context, from, to string, replace bool) (file.Info, error) {
	if err := u.Guest().Move(ctx, from, to, replace); err != nil {
		return file.Info{}, err
	}
	return u.Guest().Stat(ctx, to)
}
