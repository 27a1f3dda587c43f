package response

import (
	"encoding/base64"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// renderer makes responses of runs.
type renderer struct {
	seal func(model.State) (string, error)
	// outputs shows those of code_interpreter, also where the response was not asked to.
	outputs bool
	// acts says that a response whose model calls functions of the client's has the status
	// requires_action. OpenAI's clients know no such status, and leave such calls unread.
	acts bool
}

// response is a run as it is now.
func (v *renderer) response(s *run.State) (*Response, error) {
	set, err := response.SettingsOf(s)
	if err != nil {
		return nil, err
	}
	q := s.Request
	r := &Response{
		ID: response.ID(s.ID), Object: "response", CreatedAt: s.Began.Unix(), Status: string(run.InProgress), Background: set.Background,
		Instructions: httpapi.OrNull(q.Instructions), MaxOutputTokens: number(q.Limits.OutputTokens), MaxToolCalls: number(int64(q.Limits.Calls)),
		Model: set.Model, Output: []ResponseItem{}, ParallelToolCalls: q.Parallel, PreviousResponseID: httpapi.OrNull(set.PreviousResponseID),
		PromptCacheKey: httpapi.OrNull(q.CacheKey), Reasoning: &ResponseReasoning{httpapi.OrNull(set.Effort), httpapi.OrNull(set.Summary)}, SafetyIdentifier: httpapi.OrNull(set.SafetyIdentifier),
		ServiceTier: "default", Store: set.Store, Temperature: 1, Text: ResponseText{set.Format, "medium"}, ToolChoice: set.ToolChoice,
		Tools: append([]jsontext.Value{}, set.Tools...), TopP: 1, Truncation: "disabled", Metadata: map[string]string{},
	}
	if s.Model != "" {
		r.Model = s.Model
	}
	if q.Temperature != nil {
		r.Temperature = *q.Temperature
	}
	if q.TopP != nil {
		r.TopP = *q.TopP
	}
	if q.Truncate {
		r.Truncation = "auto"
	}
	if set.Metadata != nil {
		r.Metadata = set.Metadata
	}
	for i := range s.Output {
		it, err := v.item(&s.Output[i], set)
		if err != nil {
			return nil, err
		}
		r.Output = append(r.Output, *it)
	}
	v.end(r, s)
	return r, nil
}

// end is what a response says once its run has ended.
func (v *renderer) end(r *Response, s *run.State) {
	if s.End == nil {
		return
	}
	r.Status = string(s.End.Status)
	if s.End.Status == run.RequiresAction && !v.acts {
		r.Status = string(run.Completed)
	}
	r.Usage = usageOf(s)
	switch s.End.Status {
	case run.Completed, run.RequiresAction:
		at := s.Ended.Unix()
		r.CompletedAt = &at
	case run.Failed:
		r.Error = &ResponseError{Code: errorCode(s.End.Reason), Message: s.End.Message, Type: "server_error"}
		if s.End.Reason == run.QuotaExceeded || s.End.Reason == run.Budget {
			r.Error.Type = "rate_limit_error"
		}
	case run.Incomplete:
		r.IncompleteDetails = &ResponseIncomplete{string(s.End.Reason), s.End.Message}
	}
}

func errorCode(r run.Reason) string {
	if r == run.ModelError {
		return "server_error"
	}
	return string(r)
}

func usageOf(s *run.State) *ResponseUsage {
	u := &ResponseUsage{
		InputTokens: s.Usage.Input, OutputTokens: s.Usage.Output, TotalTokens: s.Usage.Input + s.Usage.Output, EstimatedTokens: s.Usage.Estimated,
		InputTokensDetails:  ResponseInputDetails{s.Usage.CacheRead, s.Usage.CacheWrite, s.Usage.CacheRead, s.Usage.CacheWrite},
		OutputTokensDetails: ResponseOutputDetails{s.Usage.Reasoning},
		Cost: ResponseCost{
			"USD", s.Cost.Input.Dollars(), s.Cost.Output.Dollars(), s.Cost.CacheRead.Dollars(), s.Cost.CacheWrite.Dollars(),
			s.ToolCost.Dollars(), s.Spent().Dollars(),
		},
		SandboxWindows: s.Windows,
	}
	for tool, calls := range s.Invoked {
		if u.ToolCallsDetails == nil {
			u.ToolCallsDetails = map[string]ResponseInvoked{}
		}
		u.ToolCallsDetails[tool] = ResponseInvoked{calls}
	}
	return u
}

func number(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// item is an item of a run as clients see it.
func (v *renderer) item(it *run.Item, set *response.Settings) (*ResponseItem, error) {
	out := &ResponseItem{ID: it.ID, Status: string(it.Status)}
	switch {
	case it.Message != nil:
		out.Type, out.Role = "message", string(it.Message.Role)
		parts := partsOf(it.Message.Parts, it.Message.Role)
		out.Content = &ResponseContent{Parts: parts}
	case it.Reasoning != nil:
		return out, v.reasoning(out, it.Reasoning, set)
	case it.Call != nil:
		showCall(out, it.Call)
	case it.Code != nil:
		out.Type, out.CallID, out.ContainerID, out.Language, out.Code = "sandbox_results", it.Code.CallID, httpapi.OrNull(it.Code.Sandbox), it.Code.Language, &it.Code.Code
		results := make([]ResponseSandboxResult, len(it.Code.Results))
		for i, r := range it.Code.Results {
			results[i] = ResponseSandboxResult{r.Stdout, r.Stderr, r.ExitCode, r.DurationMS, string(r.Status), r.StdoutTruncated, r.StderrTruncated}
		}
		var err error
		out.Results, err = json.Marshal(results)
		return out, err
	case it.Use != nil:
		err := v.use(out, it.Use)
		v.hideOutputs(out, set)
		return out, err
	case it.Listing != nil:
		showListing(out, it.Listing)
	case it.Approval != nil:
		showApproval(out, it.Approval)
	}
	return out, nil
}

func (v *renderer) reasoning(out *ResponseItem, t *model.Thought, set *response.Settings) error {
	out.Type = "reasoning"
	summary := make([]ResponsePart, len(t.Summary))
	for i := range t.Summary {
		summary[i] = ResponsePart{Type: "summary_text", Text: &t.Summary[i]}
	}
	out.Summary = &summary
	if t.Text != "" {
		out.Content = &ResponseContent{Parts: []ResponsePart{{Type: "reasoning_text", Text: &t.Text}}}
	}
	if set.Encrypted && t.State != (model.State{}) {
		state, err := v.seal(t.State)
		if err != nil {
			return err
		}
		out.EncryptedContent = &state
	}
	return nil
}

// partsOf are the parts of a message.
func partsOf(parts []model.Part, role model.Role) []ResponsePart {
	out := make([]ResponsePart, 0, len(parts))
	for i := range parts {
		out = append(out, partOf(&parts[i], role))
	}
	return out
}

func partOf(p *model.Part, role model.Role) ResponsePart {
	switch p.Kind {
	case model.PartRefusal:
		return ResponsePart{Type: "refusal", Refusal: &p.Text}
	case model.PartImage:
		url := p.URL
		if url == "" {
			url = "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
		}
		detail := p.Detail
		if detail == "" {
			detail = "auto"
		}
		return ResponsePart{Type: "input_image", ImageURL: &url, Detail: detail}
	case model.PartFile:
		return ResponsePart{Type: "input_file", FileName: p.Name, FileURL: p.URL}
	}
	if role != model.Assistant {
		return ResponsePart{Type: "input_text", Text: &p.Text}
	}
	return outputText(p.Text, p.Citations)
}

func outputText(s string, cites []model.Citation) ResponsePart {
	annotations := make([]ResponseAnnotation, len(cites))
	for i := range cites {
		annotations[i] = annotationOf(cites[i])
	}
	return ResponsePart{Type: "output_text", Text: &s, Annotations: &annotations, LogProbs: &[]jsontext.Value{}}
}
