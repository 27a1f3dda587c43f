package anthropic

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// ResourceFields is a file that a session's sandbox has a copy of.
type ResourceFields struct {
	Type      *string `json:"type" required:"true"`
	FileID    *string `json:"file_id" required:"true"`
	MountPath *string `json:"mount_path,omitzero"`
}

// Resource is a ResourceFields as it is shown.
type Resource struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	FileID    string    `json:"file_id"`
	MountPath string    `json:"mount_path"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// mounts reads the resources of a session.
func (in *SessionFields) mounts() (out []session.Mount, err error) {
	if len(in.Resources) == 0 || in.Resources.Kind() == 'n' {
		return nil, nil
	}
	var all []jsontext.Value
	if err := json.Unmarshal(in.Resources, &all); err != nil {
		return nil, httpapi.Invalid("resources must be an array of objects, or null")
	}
	for i, text := range all {
		at := fmt.Sprintf("resources[%d]", i)
		var head struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(text, &head); err != nil || head.Type != "file" {
			return nil, httpapi.Invalid("%s.type must be file: others are not supported by this version", at)
		}
		f := &ResourceFields{}
		if err := decode(at, text, f); err != nil {
			return nil, err
		}
		m := session.Mount{Type: session.MountFile, File: upload.ID(*f.FileID)}
		if !m.File.Valid() {
			return nil, httpapi.Invalid("%s.file_id: %s", at, upload.ErrNotFound.Msg)
		}
		if f.MountPath != nil {
			if m.Path = *f.MountPath; m.Path == "" {
				return nil, httpapi.Invalid("%s.mount_path must not be empty", at)
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// ofResources says of what is wrong with mounts how this form calls them.
func ofResources(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !strings.HasPrefix(f.Msg, "mounts") {
		return err
	}
	return fault.Wrap(f.Kind, err, strings.Replace("resources"+strings.TrimPrefix(f.Msg, "mounts"), "].path", "].mount_path", 1))
}

// resourcesOf shows the copies of files that a session has, and reports whether it has other
// mounts.
func resourcesOf(s *session.Session) (out []Resource, more bool) {
	out = []Resource{}
	for i, m := range s.About.Mounts {
		if m.File == "" {
			more = true
			continue
		}
		at := m.Path
		if !path.IsAbs(at) {
			at = path.Join(runtime.Home, at)
		}
		out = append(out, Resource{fmt.Sprintf("sesrsc_%s%02x", strings.TrimPrefix(string(s.ID), "sess_"), i), "file", string(m.File), at, s.CreatedAt, s.CreatedAt})
	}
	return out, more
}
