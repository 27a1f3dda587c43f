// Package response holds the use cases of responses: it creates, continues, follows, cancels and deletes
// them. A response is a run without a session.
package response

import (
	"context"

	"log/slog"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
)

// Containers reaches named sandboxes on any machine; *directory.Directory implements it.
type Containers interface {
	Get(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*sandbox.Sandbox, error)
}

// Config configures a Service.
type Config struct {
	Runs    *loop.Loop
	Records run.Store
	Gate    *admission.Gate
	MCP     *mcptool.Tools
	Web     *web.Service
	Seal    Sealer
	// Containers finds the containers of code_interpreter; nil without that tool.
	Containers Containers
	// Services are the web services that code in a sandbox may call.
	Services    []string
	Keep        time.Duration  // of a response after its end
	Within      time.Duration  // for which calls wait for an approval; 0 for no limit
	RetryFor    *time.Duration // run.Request.RetryFor
	MaxUnderWay int            // runs of a tenant; 0 for no limit
	Log         *slog.Logger
}

// Service holds the responses of all tenants.
type Service struct{ Config }

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg} }

// ID returns the id of a run's response.
func ID(id run.ID) string { return "resp_" + string(id[len("run_"):]) }

// RunOf returns the run of a response.
func RunOf(id string) (run.ID, bool) {
	if len(id) < len("resp_") || id[:len("resp_")] != "resp_" {
		return "", false
	}
	of := run.ID("run_" + id[len("resp_"):])
	return of, of.Valid()
}

// Find returns the run of a tenant's response.
func (s *Service) Find(ctx context.Context, t tenant.ID, id string) (*run.Run, error) {
	unknown := fault.New(fault.NotFound, "response %.80q not found", id)
	of, ok := RunOf(id)
	if !ok {
		return nil, unknown
	}
	r, err := s.Records.Run(ctx, t, of)
	if fault.KindOf(err) == fault.NotFound || err == nil && (r.Keep == 0 || r.Session != "") {
		return nil, unknown
	}
	return r, err
}

// State returns a response as it is now.
func (s *Service) State(ctx context.Context, id run.ID) (*run.State, error) {
	return s.Runs.State(ctx, id)
}

// Follow calls yield with the events of a response until it ends.
func (s *Service) Follow(ctx context.Context, t tenant.ID, id run.ID, yield func([]run.Event) error) error {
	return s.Runs.Follow(ctx, t, id, yield)
}

// Delete deletes a response.
func (s *Service) Delete(ctx context.Context, r *run.Run) error { return s.Runs.Delete(ctx, r) }

// Asked is what a response was asked with.
type Asked struct {
	Run      run.ID
	Settings *Settings
	Input    []model.Item
	before   []model.Item // and Input
}

// Custom reports whether an item is the result of a custom tool's call.
func (a *Asked) Custom(it *model.Item) bool {
	return it.Result != nil && OutputType(a.before, it.Result.CallID) == CustomOutput
}

// Asked returns what a tenant's response was asked with.
func (s *Service) Asked(ctx context.Context, t tenant.ID, id string) (*Asked, error) {
	r, err := s.Find(ctx, t, id)
	if err != nil {
		return nil, err
	}
	state, err := s.Runs.State(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	set, err := SettingsOf(state)
	if err != nil {
		return nil, err
	}
	all := state.Request.Input
	return &Asked{r.ID, set, all[len(all)-set.InputItems:], all}, nil
}

// Shared returns the files that the model shared in a tenant's response, oldest first.
func (s *Service) Shared(ctx context.Context, t tenant.ID, id string) ([]sandboxtool.FileUse, error) {
	r, err := s.Find(ctx, t, id)
	if err != nil {
		return nil, err
	}
	state, err := s.Runs.State(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	return sandboxtool.Shared(state)
}

// Begun returns a response as it was when it began. It may have ended since.
func (s *Service) Begun(ctx context.Context, id run.ID) (*run.State, error) {
	state, err := s.Runs.State(ctx, id)
	if err != nil {
		return nil, err
	}
	state.Output, state.End, state.Model = nil, nil, ""
	return state, nil
}

// ErrEnded rejects the cancellation of a response that has ended.
var ErrEnded = fault.New(fault.Invalid, "the response has already ended")

// Cancel cancels a response, and returns when that is recorded.
func (s *Service) Cancel(ctx context.Context, r *run.Run) error {
	switch err := s.Runs.Cancel(ctx, r.Tenant, r.ID); {
	case fault.KindOf(err) == fault.Conflict:
		return ErrEnded
	case err != nil:
		return err
	}
	return s.Runs.Wait(ctx, r.Tenant, r.ID)
}

// Wait returns at the end of a response.
func (s *Service) Wait(ctx context.Context, of *Started) error {
	select {
	case <-of.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.Runs.Wait(ctx, of.Run.Tenant, of.Run.ID)
}

// Attend cancels a response if ctx ends before stop is called: the response goes with the client that
// waits for it.
func (s *Service) Attend(ctx context.Context, of *Started) (stop func()) {
	hook := context.AfterFunc(ctx, func() {
		if err := s.Runs.Cancel(context.WithoutCancel(ctx), of.Run.Tenant, of.Run.ID); err != nil && fault.KindOf(err) != fault.Conflict {
			s.Log.Warn("cannot cancel a response whose client disconnected; it continues", "response", ID(of.Run.ID), "error", err)
		}
	})
	return func() { hook() }
}

// Forget removes a response that is not kept, once its caller has it.
func (s *Service) Forget(ctx context.Context, of *Started) {
	if of.Run.Keep > 0 {
		return
	}
	if err := s.Runs.Delete(context.WithoutCancel(ctx), of.Run); err != nil {
		s.Log.Warn("cannot delete an unstored response yet", "response", ID(of.Run.ID), "error", err)
	}
}

// Settings are the parts of the request that a response shows. Atoll stores them with the run.
type Settings struct {
	Model              string            `json:"model"`
	Background         bool              `json:"background,omitzero"`
	Store              bool              `json:"store,omitzero"`
	PreviousResponseID string            `json:"previous_response_id,omitzero"`
	InputItems         int               `json:"input_items"` // the last ones of the run's input
	Tools              []jsontext.Value  `json:"tools,omitzero"`
	ToolChoice         jsontext.Value    `json:"tool_choice,omitzero"`
	Metadata           map[string]string `json:"metadata,omitzero"`
	Format             jsontext.Value    `json:"format,omitzero"`
	Effort             string            `json:"effort,omitzero"`
	Summary            string            `json:"summary,omitzero"`
	SafetyIdentifier   string            `json:"safety_identifier,omitzero"`
	Encrypted          bool              `json:"encrypted,omitzero"` // include reasoning.encrypted_content
	Approvals          []Approval        `json:"approvals,omitzero"`
	Outputs            bool              `json:"outputs,omitzero"` // include those of code_interpreter
}

// SettingsOf returns the settings of a response.
func SettingsOf(s *run.State) (*Settings, error) {
	out := &Settings{}
	return out, json.Unmarshal(s.Request.Settings, out)
}
