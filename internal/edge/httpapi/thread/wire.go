package thread

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Thread is a thread's record.
type Thread struct {
	ID        string     `json:"thread_id" doc:"The id of the thread."`
	Bytes     int64      `json:"bytes" doc:"Of its files."`
	Files     int64      `json:"files" doc:"How many files, folders and links it has."`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at" doc:"When it was saved last."`
	ExpiresAt *time.Time `json:"expires_at" doc:"When it is deleted; null for when the server's rule for idle threads says so."`
}

// ThreadPage is a part of a list, by thread_id.
type ThreadPage struct {
	Data     []Thread `json:"data"`
	NextPage *string  `json:"next_page" doc:"Give it as page to get the next part; null at the end."`
}

// ThreadChange is the body that changes a thread's record.
type ThreadChange struct {
	ExpiresAt *time.Time `json:"expires_at" nullable:"true" doc:"When it is deleted; null for the server's rule."`
}

func threadOf(t *thread.Thread) Thread {
	out := Thread{ID: t.ID, Bytes: t.Bytes, Files: t.Files, CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC()}
	if t.ExpiresAt != nil {
		at := t.ExpiresAt.UTC()
		out.ExpiresAt = &at
	}
	return out
}

// SignRequest is the body that asks for a signed URL.
type SignRequest struct {
	Method    string        `json:"method,omitzero" enum:"GET,PUT" default:"GET" doc:"The method of HTTP that the URL is for."`
	Path      *string       `json:"path" required:"true" doc:"The file, from the home."`
	ExpiresIn *wire.Seconds `json:"expires_in,omitzero" minimum:"1" maximum:"86400" default:"900" doc:"Seconds."`
}

// SignedURL reads or writes one file without a key.
type SignedURL struct {
	URL       string    `json:"url" doc:"Relative to the server: put the address of the server before it."`
	Method    string    `json:"method" enum:"GET,PUT" doc:"The method of HTTP that the URL is for."`
	ExpiresAt time.Time `json:"expires_at" doc:"When it stops being valid."`
}

// FilesListRequest is the body of POST /v1/files/list.
type FilesListRequest struct {
	Source *string `json:"source" required:"true" enum:"thread,volume" doc:"Kind of the object that id names."`
	ID     *string `json:"id" required:"true" doc:"A thread_id; or slug or id of a connection that this key mounts."`
	Path   *string `json:"path,omitzero" maxLength:"512" doc:"Folder to list: of a thread, from its home; of a connection, from its root as in sub_paths. If omitted, the home, or the whole of what this key may see."`
}

// FilesListResponse is what a folder holds.
type FilesListResponse struct {
	Files []FileEntry `json:"files" doc:"Entries of the folder, by name."`
}

// FileEntry is a file or a folder.
type FileEntry struct {
	Name        string     `json:"name"`
	Path        string     `json:"path" doc:"From the home, or the connection's root."`
	Size        int64      `json:"size" doc:"Bytes; 0 of a folder."`
	Modified    *time.Time `json:"modified" doc:"null where that is not kept, as of a bucket's folders."`
	IsDirectory bool       `json:"is_directory" doc:"Whether it is a folder."`
}

func fileOf(e thread.Entry) FileEntry {
	at := e.Modified.UTC()
	return FileEntry{Name: e.Name, Path: e.Path, Size: e.Size, Modified: &at, IsDirectory: e.Directory}
}
