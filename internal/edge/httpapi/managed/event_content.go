package managed

import (
	"encoding/base64"
	"fmt"
	"mime"
	"strings"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// content reads what an event says: as it is recorded, and as a response is asked with it.
func (of contents) content(in *EventFields, path string) (parts []model.Part, wired []map[string]any, err error) {
	size, text := 0, ""
	for i, raw := range in.Content {
		at := fmt.Sprintf("%s.content[%d]", path, i)
		b := &BlockFields{}
		if err := decode(at, raw, b); err != nil {
			return nil, nil, err
		}
		if size += len(raw); *in.Type == userMessage && b.Source != nil && *b.Source.Type == "file" {
			n, err := of.fill(b, at)
			if err != nil {
				return nil, nil, err
			}
			size += n
		}
		part, as, err := b.part(at, *in.Type)
		if err != nil {
			return nil, nil, err
		}
		if size > session.MaxMessage {
			return nil, nil, httpapi.Invalid("%s.content must have at most %d bytes", path, session.MaxMessage)
		}
		if part.Kind != model.PartText {
			text = "there"
		}
		text += strings.TrimSpace(part.Text)
		parts, wired = append(parts, part), append(wired, as)
	}
	if *in.Type != userResult && len(in.Content) > 0 && text == "" {
		return nil, nil, httpapi.Invalid("%s.content must say something", path)
	}
	return parts, wired, nil
}

// fill gives a block whose source is a file the file's bytes, and a document its name. It returns
// how many they are.
func (of contents) fill(b *BlockFields, path string) (int, error) {
	s := b.Source
	if s.FileID == nil || s.Data != nil || s.MediaType != nil || s.URL != nil {
		return 0, httpapi.Invalid("%s.source must have file_id, and no more, with the type file", path)
	}
	f, data, err := of(path+".source", *s.FileID)
	if err != nil {
		return 0, err
	}
	media, _, err := mime.ParseMediaType(f.MediaType)
	if err != nil {
		media = upload.OctetStream
	}
	if *b.Type == "image" && !strings.HasPrefix(media, "image/") {
		return 0, httpapi.Invalid("%s.source.file_id: the file is %s, and no image: give it as a document", path, media)
	}
	*s = SourceFields{Type: new("base64"), MediaType: &media, Data: new(base64.StdEncoding.EncodeToString(data))}
	if *b.Type == "document" && b.Title == nil {
		b.Title = &f.Name
	}
	return len(data), nil
}

// part reads a block. Results, what a model is told of a call, and what the system says are texts.
func (b *BlockFields) part(path, of string) (part model.Part, wired map[string]any, err error) {
	kind := *b.Type
	switch {
	case kind == "text":
		if b.Text == nil || b.Source != nil || b.Title != nil {
			return part, nil, httpapi.Invalid("%s must have text, and no more, with the type text", path)
		}
		return model.Part{Kind: model.PartText, Text: *b.Text}, map[string]any{"type": "input_text", "text": *b.Text}, nil
	case of != userMessage:
		return part, nil, httpapi.Invalid("%s.type must be text: others are not supported in %s by this version", path, of)
	case kind != "image" && kind != "document":
		return part, nil, httpapi.Invalid("%s.type must be text, image or document: others are not supported by this version", path)
	case b.Source == nil || b.Text != nil || b.Title != nil && kind == "image":
		return part, nil, httpapi.Invalid("%s must have source, and no text, with the type %s", path, kind)
	}
	url, err := b.Source.url(path + ".source")
	if err != nil {
		return part, nil, err
	}
	part = model.Part{Kind: model.PartImage, URL: url}
	field := "image_url"
	wired = map[string]any{"type": "input_image"}
	if kind == "document" {
		part.Kind, field = model.PartFile, "file_url"
		wired["type"] = "input_file"
		if b.Title != nil {
			part.Name, wired["filename"] = *b.Title, *b.Title
		}
	}
	if b.Source.Data != nil {
		part.URL, part.MediaType = "", *b.Source.MediaType
		if part.Data, err = base64.StdEncoding.DecodeString(*b.Source.Data); err != nil {
			return part, nil, httpapi.Invalid("%s.source.data is not valid base64", path)
		}
		if kind == "document" {
			field = "file_data"
		}
	}
	wired[field] = url
	return part, wired, nil
}

// url is a source as a URL, which has the bytes where they are given.
func (s *SourceFields) url(path string) (string, error) {
	switch {
	case s.FileID != nil:
		return "", httpapi.Invalid("%s must have file_id with the type file alone", path)
	case *s.Type == "base64" && s.Data != nil && s.MediaType != nil && s.URL == nil && !strings.ContainsAny(*s.MediaType, ";,"):
		return "data:" + *s.MediaType + ";base64," + *s.Data, nil
	case *s.Type == "url" && s.URL != nil && s.Data == nil && s.MediaType == nil && !strings.HasPrefix(*s.URL, "data:"):
		return *s.URL, nil
	case *s.Type == "base64" || *s.Type == "url":
		return "", httpapi.Invalid("%s must have media_type and data with the type base64, and url with the type url", path)
	}
	return "", httpapi.Invalid("%s.type must be base64, url or file: others are not supported by this version", path)
}
