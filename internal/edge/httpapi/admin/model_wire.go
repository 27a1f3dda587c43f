package admin

import (
	"strings"
	"time"

	_ "github.com/atoll-run/atoll/internal/agent/model/adapter" // registers the providers
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Model is a model of a provider as the admin API shows it: without its key.
type Model struct {
	ID           string         `json:"id" doc:"mdl_ and 16 hexadecimal digits."`
	Name         string         `json:"name" doc:"Name that requests use as model."`
	Provider     model.Provider `json:"provider" doc:"The wire protocol: OpenAI's Responses, Chat Completions, which many servers speak, or Anthropic's Messages."`
	Upstream     string         `json:"upstream" doc:"Name at the provider."`
	BaseURL      string         `json:"base_url" doc:"Of the provider's API."`
	HasKey       bool           `json:"has_key" doc:"Whether there is a key for the provider; it is never shown."`
	Prices       ModelPrices    `json:"prices" doc:"US dollars for a million tokens."`
	Context      int            `json:"context" doc:"Tokens of input and output together; 0 for unknown."`
	MaxOutput    int            `json:"max_output" doc:"Tokens of an answer; 0 for unknown."`
	Capabilities []string       `json:"capabilities" doc:"Capabilities. Atoll rejects requests for any other capability before it calls the provider."`
	AllTenants   bool           `json:"all_tenants" doc:"Whether every tenant may use it."`
	Tenants      []string       `json:"tenants" doc:"Tenants that may use it, if not all: their ids, or names if a file lists names."`
	Source       string         `json:"source" enum:"api,file" doc:"Where it was made. One of a file is changed there alone."`
	File         string         `json:"file,omitzero" doc:"Path on the server of the file that declares it."`
	Overridden   bool           `json:"overridden,omitzero" doc:"A file declares a model of the same name, which is used in its place; this one can be changed and deleted by its id."`
	Plans        []string       `json:"plans" doc:"Names of the plans whose tenants may, too."`
	CreatedAt    time.Time      `json:"created_at" doc:"Of one that a file declares: when the file changed."`
	UpdatedAt    time.Time      `json:"updated_at"`
}

// ModelPrices are in US dollars for a million tokens. Omitted fields are 0.
type ModelPrices struct {
	Input      string `json:"input,omitzero" maxLength:"16" doc:"A decimal number, such as 2.50, with at most 6 digits after the point."`
	Output     string `json:"output,omitzero" maxLength:"16" doc:"US dollars for a million tokens of output, a decimal number as text."`
	CacheRead  string `json:"cache_read,omitzero" maxLength:"16" doc:"For input that the provider reads from its cache."`
	CacheWrite string `json:"cache_write,omitzero" maxLength:"16" doc:"For input that the provider writes to its cache."`
}

// ModelChange is what PATCH can change of a model; omitted fields stay unchanged.
type ModelChange struct {
	Upstream     *string      `json:"upstream,omitzero" maxLength:"256" doc:"Name at the provider. Default of a new model: name."`
	BaseURL      *string      `json:"base_url,omitzero" maxLength:"2048" doc:"Base URL of the API. Default of a new model: the provider's; openai-chat has no default. A change needs the key again."`
	Key          *string      `json:"key,omitzero" maxLength:"8192" doc:"For the provider; stored encrypted. Empty for none."`
	Prices       *ModelPrices `json:"prices,omitzero" doc:"Replaces them all."`
	Context      *int         `json:"context,omitzero" minimum:"0" maximum:"100000000" doc:"Tokens that a request and its answer may have together, if known."`
	MaxOutput    *int         `json:"max_output,omitzero" minimum:"0" maximum:"100000000" doc:"Tokens that an answer may have, if known."`
	Capabilities *[]string    `json:"capabilities,omitzero" maxItems:"16" doc:"vision, files, tools, parallel_tools, reasoning, structured_output, custom_tools. Default of a new model: tools, parallel_tools and structured_output."`
	AllTenants   *bool        `json:"all_tenants,omitzero" doc:"true if neither this nor tenants nor plans is there at first."`
	Tenants      *[]string    `json:"tenants,omitzero" maxItems:"1000" doc:"Ids or names of the tenants that may use it; then all_tenants is false."`
	Plans        *[]string    `json:"plans,omitzero" maxItems:"100" doc:"Names of the plans whose tenants may use it, too; then all_tenants is false."`
}

// NewModel is the body that makes a model.
type NewModel struct {
	Name     *string         `json:"name" required:"true" maxLength:"128" doc:"Name that requests use: letters, digits, dots, underscores, hyphens, colons and slashes."`
	Provider *model.Provider `json:"provider" required:"true" doc:"The protocol that it is asked by."`
	ModelChange
}

// ModelTest is what a model is asked.
type ModelTest struct {
	Prompt          *string `json:"prompt,omitzero" minLength:"1" maxLength:"10000" doc:"Prompt; a short question if omitted."`
	MaxOutputTokens *int    `json:"max_output_tokens,omitzero" minimum:"1" maximum:"1000000" default:"2048" doc:"Tokens that all answers together may have, reasoning included."`
}

// ModelTrial is what came of it.
type ModelTrial struct {
	OK           bool        `json:"ok" doc:"Whether the model answered."`
	Answer       string      `json:"answer" doc:"The text that the model said."`
	Reasoning    string      `json:"reasoning,omitzero" doc:"The part of its reasoning that the provider shows."`
	Stop         string      `json:"stop,omitzero" doc:"Why the answer ended: end, max_output_tokens, content_filter or refusal."`
	Usage        *ModelUsage `json:"usage" doc:"null if the provider did not tell."`
	Cost         *ModelCost  `json:"cost" doc:"By the prices of the record; null if the provider did not tell the tokens."`
	RequestID    string      `json:"request_id,omitzero" doc:"The provider's name for the request."`
	FirstTokenMS int64       `json:"first_token_ms" doc:"Milliseconds until the answer began."`
	DurationMS   int64       `json:"duration_ms" doc:"How long it took, in milliseconds."`
	Error        *ModelError `json:"error" doc:"Why there is no answer, or not all of it; null if there is."`
}

// ModelUsage is tokens of an answer, as the provider counts them.
type ModelUsage struct {
	Input      int64 `json:"input_tokens" doc:"All of the request's."`
	CacheRead  int64 `json:"cache_read_input_tokens" doc:"Of these, read from the provider's cache."`
	CacheWrite int64 `json:"cache_creation_input_tokens" doc:"Of these, written to it."`
	Output     int64 `json:"output_tokens" doc:"All of the answer's."`
	Reasoning  int64 `json:"reasoning_tokens" doc:"Of these, thought."`
}

// ModelCost is the price of an answer.
type ModelCost struct {
	Currency   string  `json:"currency" enum:"USD" doc:"The currency of all amounts."`
	Input      float64 `json:"input_cost" doc:"US dollars for input."`
	Output     float64 `json:"output_cost" doc:"US dollars for output."`
	CacheRead  float64 `json:"cache_read_cost" doc:"US dollars for input that was read from the provider's cache."`
	CacheWrite float64 `json:"cache_creation_cost" doc:"US dollars for input that was written to the provider's cache."`
	Total      float64 `json:"total_cost" doc:"US dollars for all of it."`
}

// ModelError is why a model did not answer.
type ModelError struct {
	Failure      string `json:"failure" enum:"transient,rate_limited,context_too_long,rejected,unauthorized,broken" doc:"transient and rate_limited may be gone later."`
	Message      string `json:"message"`
	Status       int    `json:"status,omitzero" doc:"Of the provider's answer; omitted if there was none."`
	RetryAfterMS int64  `json:"retry_after_ms,omitzero" doc:"Wait that the provider asks for."`
}

func modelOf(r model.Record) Model {
	source := "api"
	if r.Source != "" {
		source = "file"
	}
	return Model{
		ID: r.ID, Name: r.Name, Provider: r.Provider, Upstream: r.Upstream, BaseURL: r.BaseURL, HasKey: r.Key != "",
		Prices:  ModelPrices{r.Prices.Input.String(), r.Prices.Output.String(), r.Prices.CacheRead.String(), r.Prices.CacheWrite.String()},
		Context: r.Context, MaxOutput: r.MaxOutput, Capabilities: texts(r.Capabilities), AllTenants: r.AllTenants, Tenants: texts(r.Tenants), Plans: texts(r.Plans),
		Source: source, File: r.Source, Overridden: r.Overridden,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// texts is a list as JSON has it, empty if there is none.
func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func (c ModelChange) domain() (out model.Change, err error) {
	out = model.Change{
		Upstream: c.Upstream, BaseURL: c.BaseURL, Key: c.Key, Context: c.Context, MaxOutput: c.MaxOutput, AllTenants: c.AllTenants, Tenants: c.Tenants, Plans: c.Plans,
	}
	if c.Capabilities != nil {
		list := make([]model.Capability, len(*c.Capabilities))
		for i, v := range *c.Capabilities {
			list[i] = model.Capability(v)
		}
		out.Capabilities = &list
	}
	if p := c.Prices; p != nil {
		out.Prices = &model.Prices{}
		for _, f := range []struct {
			name, text string
			to         *model.Price
		}{
			{"input", p.Input, &out.Prices.Input}, {"output", p.Output, &out.Prices.Output},
			{"cache_read", p.CacheRead, &out.Prices.CacheRead}, {"cache_write", p.CacheWrite, &out.Prices.CacheWrite},
		} {
			if f.text == "" {
				continue
			}
			if *f.to, err = model.ParsePrice(f.text); err != nil {
				return out, httpapi.Invalid("prices.%s: %v", f.name, err)
			}
		}
	}
	return out, nil
}

func trialOf(t *model.Trial) ModelTrial {
	a := &t.Answer
	out := ModelTrial{
		OK: t.Err == nil, Answer: a.Text(), Reasoning: reasoning(a), Stop: string(a.Stop), RequestID: a.RequestID,
		FirstTokenMS: t.First.Milliseconds(), DurationMS: t.Took.Milliseconds(),
	}
	if a.Counted {
		u, c := a.Usage, t.Cost
		out.Usage = &ModelUsage{u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning}
		out.Cost = &ModelCost{"USD", c.Input.Dollars(), c.Output.Dollars(), c.CacheRead.Dollars(), c.CacheWrite.Dollars(), c.Total.Dollars()}
	}
	if e := t.Err; e != nil {
		out.Error = &ModelError{string(e.Failure), e.Msg, e.Status, e.RetryAfter.Milliseconds()}
		if e.RequestID != "" {
			out.RequestID = e.RequestID
		}
	}
	return out
}

// reasoning is what an answer shows of how it was thought.
func reasoning(a *model.Answer) string {
	var parts []string
	for _, it := range a.Items {
		if t := it.Reasoning; t != nil {
			parts = append(parts, t.Summary...)
			if t.Text != "" {
				parts = append(parts, t.Text)
			}
		}
	}
	return strings.Join(parts, "\n")
}
