package redteam

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// idempotencyCases attack the replay of answers by idempotency key.
func idempotencyCases() []Case {
	return []Case{
		{"idempotency/foreign", Critical, "sends the victim's request and Idempotency-Key with an API key of another tenant and with another API key of the victim", "the server runs each as a new request", idempotencyForeign},
		{"idempotency/race", High, "sends one request many times at once with one key", "the server runs it once, and gives no other answer", idempotencyRace},
		{"idempotency/other-request", High, "reuses a key for another body, path and query", "the server rejects each, and shows nothing of the first answer", idempotencyOther},
		{"idempotency/deleted", High, "deletes an execution and repeats its request", "the server does not return the deleted output", idempotencyDeleted},
		{"idempotency/keys", Medium, "sends keys that are empty, are too long or contain control characters", "the server rejects each", idempotencyKeys},
	}
}

const (
	idempotencyHeader = "Idempotency-Key"
	replayed          = "Idempotent-Replayed"
)

// runOnce returns a request whose program prints a different output on each run.
func runOnce(mark string) map[string]any {
	return map[string]any{"language": "python", "code": "import uuid\nprint(" + asJSON(mark) + ", uuid.uuid4())", "timeout": 20}
}

const executePath = "/v1/sandbox/execute"

func idempotencyForeign(ctx context.Context, a *arena) error {
	key, body := "redteam-"+token(8), runOnce(preyText)
	theirs, err := a.victim.do(ctx, http.MethodPost, executePath, body, idempotencyHeader, key)
	if err != nil {
		return err
	}
	if theirs.Status != http.StatusOK || !strings.Contains(string(theirs.Body), preyText) {
		return fmt.Errorf("the victim's request: %s", theirs)
	}
	colleague, err := a.key(ctx, victimTenant, envPlain, "execute")
	if err != nil {
		return err
	}
	for what, by := range map[string]caller{"another tenant": a.plain, "another key of the tenant": colleague} {
		got, err := by.do(ctx, http.MethodPost, executePath, body, idempotencyHeader, key)
		if err != nil {
			return err
		}
		if got.Header.Get(replayed) != "" || got.Header.Get("X-Trace-Id") == theirs.Header.Get("X-Trace-Id") || string(got.Body) == string(theirs.Body) {
			return found("%s got the victim's answer: %s", what, got)
		}
	}
	return nil
}

func idempotencyRace(ctx context.Context, a *arena) error {
	const at = 8
	key, body := "redteam-"+token(8), runOnce("raced")
	var answers [at]*answer
	var errs [at]error
	var wg sync.WaitGroup
	for i := range at {
		wg.Go(func() {
			answers[i], errs[i] = a.plain.do(ctx, http.MethodPost, executePath, body, idempotencyHeader, key)
		})
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	outputs := map[string]bool{}
	for _, got := range answers {
		switch {
		case got.Status == http.StatusOK:
			outputs[string(got.Body)] = true
		case got.Status != http.StatusConflict:
			return found("the server answered a concurrent duplicate with %s", got)
		}
	}
	if len(outputs) == 0 {
		return fmt.Errorf("the server served none of %d requests: %s", at, answers[0])
	}
	again, err := a.plain.do(ctx, http.MethodPost, executePath, body, idempotencyHeader, key)
	if err != nil {
		return err
	}
	outputs[string(again.Body)] = true
	if len(outputs) > 1 {
		return found("the server gave %d different answers to one key: %s", len(outputs), again)
	}
	return nil
}

func idempotencyOther(ctx context.Context, a *arena) error {
	key := "redteam-" + token(8)
	first, err := a.plain.do(ctx, http.MethodPost, executePath, runOnce("first"), idempotencyHeader, key)
	if err != nil {
		return err
	}
	if first.Status != http.StatusOK {
		return fmt.Errorf("the first request: %s", first)
	}
	for what, try := range map[string]struct {
		path string
		body any
	}{
		"another body": {executePath, runOnce("second")}, "a body that differs by a space": {executePath, map[string]any{"language": "python", "code": runOnce("first")["code"].(string) + " ", "timeout": 20}},
		"another interface": {"/v1/agents", map[string]any{"name": "x", "model": map[string]any{"name": "redteam-none"}}},
	} {
		got, err := a.plain.do(ctx, http.MethodPost, try.path, try.body, idempotencyHeader, key)
		if err != nil {
			return err
		}
		if got.Status == http.StatusOK || strings.Contains(string(got.Body), "first ") || got.Header.Get(replayed) != "" {
			return found("a key with %s: %s", what, got)
		}
	}
	return nil
}

func idempotencyDeleted(ctx context.Context, a *arena) error {
	key, mark := "redteam-"+token(8), "redteam-deleted-"+token(6)
	first, err := a.plain.do(ctx, http.MethodPost, executePath, runOnce(mark), idempotencyHeader, key)
	if err != nil {
		return err
	}
	if first.Status != http.StatusOK {
		return fmt.Errorf("the first request: %s", first)
	}
	if err := a.plain.must(ctx, http.MethodDelete, "/v1/executions/"+first.Header.Get("X-Trace-Id"), nil, nil); err != nil {
		return err
	}
	again, err := a.plain.do(ctx, http.MethodPost, executePath, runOnce(mark), idempotencyHeader, key)
	if err != nil {
		return err
	}
	if again.Header.Get(replayed) != "" || string(again.Body) == string(first.Body) {
		return found("the server returned the output of a deleted execution: %s", again)
	}
	return nil
}

func idempotencyKeys(ctx context.Context, a *arena) error {
	for _, key := range []string{strings.Repeat("k", 256), "a\tb", "schlüssel", " "} {
		got, err := a.plain.do(ctx, http.MethodPost, executePath, runOnce("keys"), idempotencyHeader, key)
		if err := unwanted(fmt.Sprintf("the key %.20q", key), got, err); err != nil {
			return err
		}
	}
	return nil
}
