// Package openai speaks two wire protocols of models by OpenAI's SDK: Responses, and Chat
// Completions with the dialects of the many servers that speak it.
//
// The SDK makes requests and splits streams into events. Events are decoded here: a server
// that leaves fields out, adds some or sends events of later versions is understood as far
// as it goes.
package openai

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/core/model"
)

// options are those of every request of a model. Nothing comes from the environment.
func options(rec *model.Record, rt http.RoundTripper) []option.RequestOption {
	out := []option.RequestOption{
		option.WithHTTPClient(transport.Client(rt, rec.Key)), option.WithMaxRetries(0), option.WithBaseURL(strings.TrimSuffix(rec.BaseURL, "/") + "/"),
	}
	if rec.Key == "" {
		return append(out, option.WithAPIKey("none"), option.WithHeader("Authorization", "")) // servers without keys
	}
	return append(out, option.WithAPIKey(rec.Key))
}

// events reads the JSON of a stream's events until the decoder ends.
type events struct {
	decoder ssestream.Decoder
	data    []byte
}

// next reports whether there is another event, which data then has. done is the end that
// the server marks.
func (e *events) next() (ok, done bool) {
	for e.decoder.Next() {
		data := bytes.TrimSpace(e.decoder.Event().Data)
		if len(data) == 0 {
			continue
		}
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			return false, true
		}
		e.data = data
		return true, false
	}
	return false, false
}

func unreadable() error {
	return model.Errorf(model.Transient, "the provider sent an event that cannot be read")
}

// dataURL is bytes as a URL.
func dataURL(p model.Part) string {
	if p.URL != "" {
		return p.URL
	}
	media := p.MediaType
	if media == "" {
		media = "application/octet-stream"
	}
	return "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

// textOf joins the texts of parts.
func textOf(parts []model.Part) string {
	var out strings.Builder
	for _, p := range parts {
		if p.Text != "" {
			if out.Len() > 0 {
				out.WriteString("\n")
			}
			out.WriteString(p.Text)
		}
	}
	return out.String()
}
