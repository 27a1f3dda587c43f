package anthropic

import (
	"encoding/base64"
	"fmt"
	"mime"
	"strings"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// content reads what an event says.
func (of contents) content(in *EventFields, path string) (parts []model.Part, err error) {
	size, text := 0, ""
	for i, raw := range in.Content {
		at := fmt.Sprintf("%s.content[%d]", path, i)
		b := &BlockFields{}
		if err := decode(at, raw, b); err != nil {
			return nil, err
		}
		if size += len(raw); *in.Type == userMessage && b.Source != nil && *b.Source.Type == "file" {
			n, err := of.fill(b, at)
			if err != nil {
				return nil, err
			}
			size += n
		}
		part, err := b.part(at, *in.Type)
		if err != nil {
			return nil, err
		}
		if size > session.MaxMessage {
			return nil, httpapi.Invalid("%s.content must have at most %d bytes", path, session.MaxMessage)
		}
		if part.Kind != model.PartText {
			text = "there"
		}
		text += strings.TrimSpace(part.Text)
		parts = append(parts, part)
	}
	if *in.Type != userResult && len(in.Content) > 0 && text == "" {
		return nil, httpapi.Invalid("%s.content must say something", path)
	}
	return parts, nil
}

// fill gives a block whose source is a file the file's bytes, and a document its name. It returns
// how many they are.
func (of contents) fill(b *BlockFields, path string) (int, error) {
	s := b.Source
	if s.FileID == nil || s.Data != nil || s.MediaType != nil || s.URL != nil {
		return 0, httpapi.Invalid("%s.source must have file_id, and no more, with the type file", path)
	}
	f, data, err := of.files.Read(of.ctx, path+".source", *s.FileID)
	if err != nil {
		return 0, err
	}
	media, _, err := mime.ParseMediaType(f.MediaType)
	if err != nil {
		media = httpapi.OctetStream
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
func (b *BlockFields) part(path, of string) (part model.Part, err error) {
	kind := *b.Type
	switch {
	case kind == "text":
		if b.Text == nil || b.Source != nil || b.Title != nil {
			return part, httpapi.Invalid("%s must have text, and no more, with the type text", path)
		}
		return model.Part{Kind: model.PartText, Text: *b.Text}, nil
	case of != userMessage:
		return part, httpapi.Invalid("%s.type must be text: others are not supported in %s by this version", path, of)
	case kind != "image" && kind != "document":
		return part, httpapi.Invalid("%s.type must be text, image or document: others are not supported by this version", path)
	case b.Source == nil || b.Text != nil || b.Title != nil && kind == "image":
		return part, httpapi.Invalid("%s must have source, and no text, with the type %s", path, kind)
	}
	if part, err = b.Source.part(path + ".source"); err != nil {
		return part, err
	}
	part.Kind = model.PartImage
	if kind == "document" {
		part.Kind = model.PartFile
		if b.Title != nil {
			part.Name = *b.Title
		}
	}
	return part, nil
}

// part reads a source: bytes, or a URL that the provider fetches.
func (s *SourceFields) part(path string) (part model.Part, err error) {
	switch {
	case s.FileID != nil:
		return part, httpapi.Invalid("%s must have file_id with the type file alone", path)
	case *s.Type == "base64" && s.Data != nil && s.MediaType != nil && s.URL == nil && !strings.ContainsAny(*s.MediaType, ";,"):
		part.MediaType = *s.MediaType
		if part.Data, err = base64.StdEncoding.DecodeString(*s.Data); err != nil {
			err = httpapi.Invalid("%s.data is not valid base64", path)
		}
		return part, err
	case *s.Type == "url" && s.URL != nil && s.Data == nil && s.MediaType == nil && !strings.HasPrefix(*s.URL, "data:"):
		if part.URL = *s.URL; !strings.HasPrefix(part.URL, "https://") && !strings.HasPrefix(part.URL, "http://") {
			err = httpapi.Invalid("%s.url must be an https URL", path)
		}
		return part, err
	case *s.Type == "base64" || *s.Type == "url":
		return part, httpapi.Invalid("%s must have media_type and data with the type base64, and url with the type url", path)
	}
	return part, httpapi.Invalid("%s.type must be base64, url or file: others are not supported by this version", path)
}
