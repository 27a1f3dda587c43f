package redteam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// model makes a model that cannot be reached, for the attacker and the victim.
func (a *arena) model(ctx context.Context, name string) (remove func() error, err error) {
	body := map[string]any{"name": name, "provider": "openai-chat", "base_url": "https://redteam.invalid/v1", "tenants": []string{attackerTenant, victimTenant}}
	if err := a.admin.must(ctx, http.MethodPost, "/v1/admin/models", body, nil); err != nil {
		return nil, err
	}
	return func() error { return gone(context.WithoutCancel(ctx), a.admin, "/v1/admin/models/"+name) }, nil
}

// foreignResponse gives the victim a response by a model that cannot be reached, and
// attacks that. The model is there for as long as the case.
func foreignResponse(ctx context.Context, a *arena) (err error) {
	a.spend.Lock()
	defer a.spend.Unlock()
	model := "redteam-" + a.run
	remove, err := a.model(ctx, model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var made struct {
		ID string `json:"id"`
	}
	in := map[string]any{"model": model, "input": preyText, "background": true}
	if err := a.victim.must(ctx, http.MethodPost, "/v1/responses", in, &made); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.deleteResponse(context.WithoutCancel(ctx), made.ID)) }()
	p := prey{"response_id": made.ID}
	if err := errors.Join(a.compare(ctx, a.plain, p, "/v1/responses/", "response_id"), a.compare(ctx, a.plain, p, "/v1/agent/", "response_id")); err != nil {
		return err
	}
	none := never(made.ID)
	for _, path := range []string{"/v1/responses/%s?stream=true", "/v1/responses/%s/input_items?order=asc"} {
		if err := a.alikeFor(ctx, http.MethodGet, path, nil, made.ID, none); err != nil {
			return err
		}
	}
	ask := func(id string) (*answer, error) {
		return a.plain.do(ctx, http.MethodPost, "/v1/responses", map[string]any{"model": model, "input": "continue", "previous_response_id": id})
	}
	real, err := ask(made.ID)
	if err != nil {
		return err
	}
	unknown, err := ask(none)
	if err != nil {
		return err
	}
	if err := alike("a response that continues the victim's", real, unknown, made.ID, none); err != nil {
		return err
	}
	var still struct{ Model string }
	if err := a.victim.must(ctx, http.MethodGet, "/v1/responses/"+made.ID, nil, &still); err != nil {
		return found("the victim's response is gone: %v", err)
	}
	return nil
}

// alikeFor asks the same of a foreign id and of one that was never given.
func (a *arena) alikeFor(ctx context.Context, method, path string, in any, id, none string) error {
	real, err := a.plain.do(ctx, method, fmt.Sprintf(path, id), in)
	if err != nil {
		return err
	}
	unknown, err := a.plain.do(ctx, method, fmt.Sprintf(path, none), in)
	if err != nil {
		return err
	}
	return alike(method+" "+path, real, unknown, id, none)
}

// deleteTime bounds how long a cancelled response may take to end.
const deleteTime = 15 * time.Second

// deleteResponse ends the victim's response and deletes it.
func (a *arena) deleteResponse(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTime)
	defer cancel()
	at := "/v1/responses/" + id
	for {
		if _, err := a.victim.do(ctx, http.MethodPost, at+"/cancel", nil); err != nil { // it may have ended
			return err
		}
		got, err := a.victim.do(ctx, http.MethodDelete, at, nil)
		if err != nil {
			return err
		}
		var gone struct{ Deleted bool }
		if got.Status == http.StatusNotFound || json.Unmarshal(got.Body, &gone) == nil && gone.Deleted {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("delete the victim's response: %s", got)
		}
	}
}
