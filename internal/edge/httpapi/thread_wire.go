package httpapi

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/thread"
)

// Thread is a thread's record.
type Thread struct {
	ID        string     `json:"thread_id"`
	Bytes     int64      `json:"bytes" doc:"Of its files."`
	Files     int64      `json:"files" doc:"How many files, folders and links it has."`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at" doc:"When it was saved last."`
	ExpiresAt *time.Time `json:"expires_at" doc:"When it is deleted; null for when the server's own rule for idle threads says."`
}

// ThreadPage is a part of a list, by thread_id.
type ThreadPage struct {
	Data     []Thread `json:"data" nullable:"false"`
	NextPage *string  `json:"next_page" doc:"Give it as page to get the next part; null at the end."`
}

// ThreadChange is the body that changes a thread's record.
type ThreadChange struct {
	ExpiresAt *time.Time `json:"expires_at" nullable:"true" doc:"When it is to be deleted; null to take that back."`
}

func threadWire(t *thread.Thread) Thread {
	out := Thread{ID: t.ID, Bytes: t.Bytes, Files: t.Files, CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC()}
	if t.ExpiresAt != nil {
		at := t.ExpiresAt.UTC()
		out.ExpiresAt = &at
	}
	return out
}

// SignRequest is the body that asks for a signed URL.
type SignRequest struct {
	Method    string   `json:"method,omitzero" enum:"GET,PUT" default:"GET"`
	Path      *string  `json:"path" required:"true" nullable:"false" doc:"The file, from the home."`
	ExpiresIn *Seconds `json:"expires_in,omitzero" minimum:"1" maximum:"86400" default:"900" doc:"Seconds."`
}

// SignedURL lets whoever has it read or write one file, without a key.
type SignedURL struct {
	URL       string    `json:"url" doc:"Relative to the server: what stands before it is how the caller reaches the server."`
	Method    string    `json:"method" enum:"GET,PUT"`
	ExpiresAt time.Time `json:"expires_at"`
}
