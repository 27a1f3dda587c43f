package openai

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/core/model"
)

// ResponsesProtocol is OpenAI's Responses API.
var ResponsesProtocol = model.Protocol{
	Name: "openai", DefaultURL: "https://api.openai.com/v1", CustomTools: true,
	Open: func(r model.Record, rt http.RoundTripper) model.Model { return NewResponses(r, rt) },
}

// ChatProtocol is the Chat Completions API, which many servers speak.
var ChatProtocol = model.Protocol{
	Name: "openai-chat", CustomTools: true,
	Open: func(r model.Record, rt http.RoundTripper) model.Model { return NewChat(r, rt) },
}
