package session

import (
	"encoding/base64"
	"maps"
	"slices"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// attached returns the files of a message, by name.
func (in *NewSessionEvent) attached() (map[string][]byte, error) {
	files, size := map[string][]byte{}, 0
	for name, text := range in.Files {
		files[name] = []byte(text)
		size += len(text)
	}
	for name, text := range in.FilesBase64 {
		if _, twice := files[name]; twice {
			return nil, httpapi.Invalid("files and files_base64 must not both have %s", wire.Quote(name))
		}
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, httpapi.Invalid("files_base64 must have base64 as the contents of %s", wire.Quote(name))
		}
		files[name] = data
		size += len(data)
	}
	if len(files) > execution.MaxFiles || size > session.MaxMessage {
		return nil, httpapi.Invalid("files and files_base64 must have at most %d files and %d bytes", execution.MaxFiles, session.MaxMessage)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := execution.CheckFileName("files", name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// message returns a message with its files.
func (in *NewSessionEvent) message(text string) ([]model.Item, error) {
	files, err := in.attached()
	if err != nil {
		return nil, err
	}
	out := model.Text(model.User, text)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out.Message.Parts = append(out.Message.Parts, model.Part{Kind: model.PartFile, Name: name, Data: files[name], MediaType: file.MediaType(name)})
	}
	return []model.Item{out}, nil
}

// fileNames are those of the files of a message.
func fileNames(parts []model.Part) (out []string) {
	for _, p := range parts {
		if p.Kind == model.PartFile && p.Name != "" {
			out = append(out, p.Name)
		}
	}
	return out
}
