package skill

import (
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Bounds of a form beside those of a skill.
const (
	maxParts = skill.MaxFiles + 8
	maxField = 4 << 10 // bytes
)

// upload is what a form has.
type upload struct {
	title  string
	bundle *skill.Bundle
}

// readForm reads a skill's files: each of them, named with its path, or one archive.
func readForm(c *httpapi.Call) (*upload, error) {
	media, params, err := mime.ParseMediaType(c.R.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return nil, fault.New(fault.Unsupported, "Content-Type must be multipart/form-data")
	}
	form := multipart.NewReader(c.Content(), params["boundary"])
	var up upload
	var files []skill.File
	left := skill.MaxBytes
	for n := 0; ; n++ {
		part, err := form.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, httpapi.BadForm(err)
		}
		if n >= maxParts {
			return nil, httpapi.Invalid("files must have at most %d entries", skill.MaxFiles)
		}
		_, named, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if err != nil {
			return nil, httpapi.BadForm(err)
		}
		switch name := named["name"]; name {
		case "display_name", "display_title":
			text, err := bounded(part, maxField, name)
			if err != nil {
				return nil, err
			}
			up.title = string(text)
			if err := skill.CheckTitle(up.title); err != nil {
				return nil, err
			}
		case "files[]", "files", "file":
			data, err := bounded(part, left, "files")
			if err != nil {
				return nil, err
			}
			left -= len(data)
			files = append(files, skill.File{Path: strings.TrimPrefix(named["filename"], "./"), Exec: skill.Program(data), Data: data})
		default:
			return nil, httpapi.Invalid("the form must have the fields files[] and display_name alone; %.40q is not supported", name)
		}
	}
	if len(files) == 1 && skill.IsArchive(files[0].Path, files[0].Data) {
		if files, err = skill.Unpack(files[0].Data); err != nil {
			return nil, err
		}
	}
	up.bundle, err = skill.NewBundle(files)
	return &up, err
}

// bounded reads a part of a form.
func bounded(part *multipart.Part, most int, field string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(part, int64(most)+1))
	if err != nil {
		return nil, httpapi.BadForm(err)
	}
	if len(data) > most {
		return nil, httpapi.Invalid("%s must be at most %d bytes", field, map[bool]int{true: skill.MaxBytes, false: most}[field == "files"])
	}
	return data, nil
}
