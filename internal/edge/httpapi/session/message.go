package session

import (
	"encoding/base64"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// attached are the files of a message, in base64 by name.
func (in *NewSessionEvent) attached() (map[string]string, error) {
	files, size := map[string]string{}, 0
	for name, text := range in.Files {
		files[name] = base64.StdEncoding.EncodeToString([]byte(text))
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
		files[name] = text
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

// input is a message as a response is asked with it.
func (in *NewSessionEvent) input() (jsontext.Value, error) {
	files, err := in.attached()
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return json.Marshal(*in.Content)
	}
	type part struct {
		Type     string `json:"type"`
		Text     string `json:"text,omitzero"`
		FileName string `json:"filename,omitzero"`
		FileData string `json:"file_data,omitzero"`
	}
	parts := []part{{Type: "input_text", Text: *in.Content}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		parts = append(parts, part{Type: "input_file", FileName: name, FileData: "data:" + httpapi.MediaTypeOf(name) + ";base64," + files[name]})
	}
	return json.Marshal([]map[string]any{{"type": "message", "role": "user", "content": parts}})
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
