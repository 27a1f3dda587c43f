package redteam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// actor is a model of the attacked server that plays scripts of the lure.
type actor struct {
	lure  *lure
	model string
}

// modelPrefix starts the name of every model that a run creates.
const modelPrefix = "redteam-"

// The actor's prices, in US dollars per million tokens.
const (
	inputPrice  = 1
	outputPrice = 10
)

// theActor creates the model, and skips the case if the server cannot reach the lure.
func (a *arena) theActor(ctx context.Context) (actor, error) {
	return a.acting.get(ctx, func(ctx context.Context) (actor, error) {
		l, err := a.theLure(ctx)
		if err != nil {
			return actor{}, err
		}
		it := actor{l, modelPrefix + "actor-" + a.run}
		got, err := a.admin.do(ctx, http.MethodPost, "/v1/admin/models", map[string]any{
			"name": it.model, "provider": "openai-chat", "base_url": "http://" + l.addr + "/model/v1", "tenants": []string{attackerTenant, victimTenant},
			"prices": map[string]any{"input": fmt.Sprint(inputPrice), "output": fmt.Sprint(outputPrice)},
		})
		if err != nil {
			return it, err
		}
		if got.Status >= 300 {
			return it, skip("not run: needs model_allow to include %s, the address of this program's model: %s", hostName(l.addr), got)
		}
		a.later(func(ctx context.Context) error { return gone(ctx, a.admin, "/v1/admin/models/"+it.model) })
		if got, err = a.admin.do(ctx, http.MethodPost, "/v1/admin/models/"+it.model+"/test", map[string]any{"prompt": "ready?"}); err != nil {
			return it, err
		}
		if len(l.reached("/model/")) == 0 {
			return it, skip("not run: needs the server to reach this program's model at %s (model_allow, --listen): %s", l.addr, got)
		}
		return it, nil
	})
}

// hostName strips the port from an address.
func hostName(addr string) string {
	u := url.URL{Host: addr}
	return u.Hostname()
}

// talk is a session with an agent that uses the actor.
type talk struct {
	actor
	by   caller
	path string // of the session
	id   string
}

// agent creates an agent that uses the actor, and returns its id. Fields in def override the defaults.
func (a *arena) agent(ctx context.Context, by caller, it actor, def map[string]any) (string, error) {
	body := map[string]any{"name": "Redteam", "model": map[string]any{"name": it.model}}
	maps.Copy(body, def)
	var made struct{ ID string }
	err := by.must(ctx, http.MethodPost, "/v1/agents", body, &made)
	return made.ID, err
}

// converse creates an agent and starts a session with it. more has additional fields of the session.
func (a *arena) converse(ctx context.Context, by caller, def, more map[string]any) (talk, error) {
	it, err := a.theActor(ctx)
	if err != nil {
		return talk{}, err
	}
	id, err := a.agent(ctx, by, it, def)
	if err != nil {
		return talk{}, err
	}
	return a.begin(ctx, by, it, id, more)
}

// begin starts a session with an agent.
func (a *arena) begin(ctx context.Context, by caller, it actor, agent string, more map[string]any) (talk, error) {
	body := map[string]any{"agent_id": agent}
	maps.Copy(body, more)
	var made struct{ ID string }
	err := by.must(ctx, http.MethodPost, "/v1/sessions", body, &made)
	return talk{it, by, "/v1/sessions/" + made.ID, made.ID}, err
}

// waitingCall is a call that waits for the client.
type waitingCall struct {
	ID    string `json:"tool_use_id"`
	Name  string
	Needs string
}

// said is the result of a turn.
type said struct {
	Content, Status string
	Error           *struct{ Code, Message string }
	Waiting         []waitingCall `json:"requires_action"`
	Usage           turnUsage

	answer *answer
}

// turnUsage is the usage of a turn or a session.
type turnUsage struct {
	Input  int64   `json:"input_tokens"`
	Output int64   `json:"output_tokens"`
	Cost   float64 `json:"cost_usd"`
}

// post sends an event, and accepts any answer.
func (t talk) post(ctx context.Context, event map[string]any) (*answer, error) {
	return t.by.do(ctx, http.MethodPost, t.path+"/events", event)
}

// message returns an event that makes the model play a script.
func message(s *script) map[string]any {
	return map[string]any{"type": "message", "role": "user", "content": s.id}
}

// confirm returns an event that approves or denies a call.
func confirm(id string, approve bool) map[string]any {
	return map[string]any{"type": "tool_confirmation", "tool_use_id": id, "approve": approve}
}

// send sends an event that starts a turn, and returns the result of the turn.
func (t talk) send(ctx context.Context, event map[string]any) (out said, err error) {
	got, err := t.post(ctx, event)
	if err != nil {
		return out, err
	}
	if got.Status != http.StatusOK || json.Unmarshal(got.Body, &out) != nil {
		return out, fmt.Errorf("POST %s/events: %s", t.path, got)
	}
	out.answer = got
	return out, nil
}

// play has the model make one call after another.
func (t talk) play(ctx context.Context, calls ...toolCall) (said, error) {
	return t.send(ctx, message(t.lure.play(steps(calls...))))
}

// sessionEvent is an event of a session.
type sessionEvent struct {
	ID, Type, Name, Content string
	ToolUse                 string `json:"tool_use_id"`
	IsError                 bool   `json:"is_error"`
}

// events returns the events of a session, decoded and as the JSON text that the server sent.
func (t talk) events(ctx context.Context) (all []sessionEvent, whole string, err error) {
	raw, err := listed[json.RawMessage](ctx, t.by, t.path+"/events?limit=100")
	for _, r := range raw {
		var e sessionEvent
		if err := json.Unmarshal(r, &e); err != nil {
			return nil, "", err
		}
		all = append(all, e)
		whole += string(r) + "\n"
	}
	return all, whole, err
}

// results returns the results of a session's calls, in order.
func (t talk) results(ctx context.Context) (out []sessionEvent, err error) {
	all, _, err := t.events(ctx)
	for _, e := range all {
		if e.Type == "tool_result" {
			out = append(out, e)
		}
	}
	return out, err
}

// end deletes the session with its sandboxes and turns.
func (t talk) end(ctx context.Context) error {
	if t.id == "" {
		return nil
	}
	return endSession(context.WithoutCancel(ctx), t.by, t.path)
}

// endSession interrupts and deletes a session. It retries, because the server deletes no busy session.
func endSession(ctx context.Context, by caller, path string) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTime)
	defer cancel()
	for {
		if _, err := by.do(ctx, http.MethodPost, path+"/interrupt", nil); err != nil { // the session may be idle
			return err
		}
		got, err := by.do(ctx, http.MethodDelete, path, nil)
		if err != nil {
			return err
		}
		if got.Status < 300 || got.Status == http.StatusNotFound {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("delete %s: %s", path, got)
		}
	}
}

// emptyAgents deletes the sessions, agents, vaults, skills and files of a tenant.
func emptyAgents(ctx context.Context, c caller) error {
	sessions, err := listed[struct{ ID string }](ctx, c, "/v1/sessions?include_archived=true")
	errs := []error{err}
	for _, s := range sessions {
		errs = append(errs, endSession(ctx, c, "/v1/sessions/"+s.ID))
	}
	for _, list := range []string{"/v1/agents", "/v1/vaults", "/v1/skills", "/v1/files"} {
		all, err := listed[struct{ ID string }](ctx, c, list)
		errs = append(errs, err)
		for _, one := range all {
			if strings.Contains(one.ID, "_") || strings.Contains(one.ID, "-") {
				errs = append(errs, gone(ctx, c, list+"/"+one.ID))
			}
		}
	}
	return errors.Join(errs...)
}
