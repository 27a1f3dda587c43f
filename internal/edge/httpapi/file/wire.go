package file

import (
	"time"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/upload"
)

// UploadedFile is what is recorded of a file.
type UploadedFile struct {
	ID           string     `json:"id" doc:"file_ and hexadecimal digits: 32 of one that was uploaded, more of one that an agent has shared."`
	Type         string     `json:"type" enum:"file"`
	FileName     string     `json:"filename"`
	MediaType    string     `json:"mime_type" doc:"Its media type."`
	Size         int64      `json:"size_bytes" doc:"Size in bytes."`
	CreatedAt    time.Time  `json:"created_at"`
	ExpiresAt    *time.Time `json:"expires_at" doc:"null for one that stays until it is deleted."`
	Downloadable bool       `json:"downloadable" doc:"Always true."`
	Scope        *FileScope `json:"scope" doc:"Where an agent has shared it; null for one that was uploaded."`
}

// FileScope is the session whose agent has shared a file.
type FileScope struct {
	Type string `json:"type" enum:"session"`
	ID   string `json:"id"`
}

// DeletedFile says that a file is gone.
type DeletedFile struct {
	ID   string `json:"id"`
	Type string `json:"type" enum:"file_deleted"`
}

func fileOf(f *upload.File) UploadedFile {
	out := UploadedFile{ID: string(f.ID), Type: "file", FileName: f.Name, MediaType: f.MediaType, Size: f.Size, CreatedAt: f.CreatedAt, Downloadable: true}
	if !f.ExpiresAt.IsZero() {
		out.ExpiresAt = &f.ExpiresAt
	}
	return out
}

func sharedOf(by session.ID, u *sandboxtool.FileUse, at time.Time) UploadedFile {
	out := UploadedFile{ID: u.FileID, Type: "file", FileName: u.Name, MediaType: file.MediaType(u.Name), CreatedAt: at, Downloadable: true, Scope: &FileScope{"session", string(by)}}
	if u.Size != nil {
		out.Size = *u.Size
	}
	return out
}
