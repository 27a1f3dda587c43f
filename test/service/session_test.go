package service

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// sessionEvent is an event of a session as a client reads it; raw is all of it.
type sessionEvent struct {
	ID, Type, Content, Status, Of, Text string
	Name                                string
	ToolUse                             string `json:"tool_use_id"`
	Item                                string `json:"item_id"`
	Approve                             *bool
	KeyID                               string                `json:"key_id"`
	StopReason                          struct{ Type string } `json:"stop_reason"`
	raw                                 string
}

type sessionTurn struct {
	Content, Status string
	Error           *struct{ Code, Message string }
	RequiresAction  []struct {
		ToolUseID string `json:"tool_use_id"`
		Name      string
		Needs     string
	} `json:"requires_action"`
}

// talker is a client of the sessions of a tenant.
type talker struct {
	testing.TB
	line *succession
	key  string
	path string // of the session
}

// begin begins a session with an agent that is made for it.
func (k *talker) begin(agent map[string]any) *talker {
	k.Helper()
	var made struct{ ID string }
	body := map[string]any{"name": "Helper", "model": map[string]string{"name": "scripted"}}
	maps.Copy(body, agent)
	k.line.now().Must(k, k.key, http.MethodPost, "/default/v1/agents", body).Into(k, http.StatusCreated, &made)
	k.line.now().Must(k, k.key, http.MethodPost, "/default/v1/sessions", map[string]any{"agent_id": made.ID}).Into(k, http.StatusCreated, &made)
	return &talker{k.TB, k.line, k.key, "/default/v1/sessions/" + made.ID}
}

func (k *talker) post(body map[string]any) *atolltest.Answer {
	k.Helper()
	return k.line.now().Must(k, k.key, http.MethodPost, k.path+"/events", body)
}

func (k *talker) send(body map[string]any, status, content string) (turn sessionTurn) {
	k.Helper()
	k.post(body).Into(k, http.StatusOK, &turn)
	if turn.Status != status || !strings.Contains(turn.Content, content) {
		k.Errorf("%v: %+v", body, turn)
	}
	return turn
}

func message(text string) map[string]any {
	return map[string]any{"type": "message", "role": "user", "content": text}
}

func confirm(id string, approve bool) map[string]any {
	return map[string]any{"type": "tool_confirmation", "tool_use_id": id, "approve": approve}
}

// until waits for the session to have a status.
func (k *talker) until(status string) {
	k.Helper()
	last := k.newest()
	var s struct{ Status string }
	if k.line.now().Must(k, k.key, http.MethodGet, k.path, nil).Into(k, http.StatusOK, &s); s.Status != status {
		k.reach(last, func(e sessionEvent) bool { return e.Status == status })
	}
}

// reach follows the events after one of them to the first that is wanted.
func (k *talker) reach(after string, wanted func(sessionEvent) bool) {
	k.Helper()
	found := false
	err := k.follow(k.Context(), http.MethodGet, "/events/stream", nil, after, func(e sessionEvent) bool {
		found = wanted(e)
		return !found
	})
	if err != nil || !found {
		k.Fatalf("the events end without what was waited for: %v", err)
	}
}

// newest is the id of the last event; "" where there is none.
func (k *talker) newest() string {
	k.Helper()
	var got struct{ Data []sessionEvent }
	k.line.now().Must(k, k.key, http.MethodGet, k.path+"/events?order=desc&limit=1", nil).Into(k, http.StatusOK, &got)
	if len(got.Data) == 0 {
		return ""
	}
	return got.Data[0].ID
}

// events reads all events, in pages.
func (k *talker) events(query string) (all []sessionEvent) {
	k.Helper()
	for page := ""; ; {
		var got struct {
			Data []json.RawMessage
			Next *string `json:"next_page"`
		}
		k.line.now().Must(k, k.key, http.MethodGet, k.path+"/events?limit=7"+query+page, nil).Into(k, http.StatusOK, &got)
		for _, raw := range got.Data {
			e := sessionEvent{raw: string(raw)}
			if err := json.Unmarshal(raw, &e); err != nil {
				k.Fatal(err)
			}
			all = append(all, e)
		}
		if got.Next == nil {
			return all
		}
		page = "&page=" + *got.Next
	}
}

// follow reads a stream until it ends or yield returns false.
func (k *talker) follow(ctx context.Context, method, path string, body map[string]any, last string, yield func(sessionEvent) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	raw := []byte(nil)
	if body != nil {
		raw, _ = json.Marshal(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, k.line.now().URL+k.path+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + k.key}, "Accept": {"text/event-stream"}, "Last-Event-Id": {last}}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, err := io.ReadAll(answer.Body)
		return errors.Join(fmt.Errorf("HTTP %d: %s", answer.StatusCode, text), err)
	}
	id, lines := "", bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = v
		}
		v, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		e := sessionEvent{raw: v}
		if err := json.Unmarshal([]byte(v), &e); err != nil {
			return err
		}
		if e.Type != "delta" && e.ID != id {
			return fmt.Errorf("the event %s has the id %q", v, id)
		}
		if !yield(e) {
			return nil
		}
	}
	return lines.Err()
}

func raws(all []sessionEvent) (out []string) {
	for _, e := range all {
		if e.Type != "delta" {
			out = append(out, e.raw)
		}
	}
	return out
}

// TestSession has conversations with agents: they run code, what was said and done is there
// in the next turn, calls wait for answers, events come as they happen, and turns go on in the
// next server when the server is killed.
func TestSession(t *testing.T) {
	var recalled atomic.Bool
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		raw, _ := json.Marshal(r.Body["input"])
		said, result := conversation(r.Body)
		if said == "recall" {
			recalled.Store(strings.Contains(string(raw), "say hello") && strings.Contains(string(raw), "print(6 * 7)"))
			return scriptedmodel.Say("I do."), true
		}
		if !strings.Contains(lastItem(r.Body), "function_call_output") {
			result = ""
		}
		if turn, ok := works(r.Body, said, result); ok {
			return turn, true
		}
		return obey(said, result)
	}})
	t.Cleanup(p.Close)
	hooks := newReceiver(t)
	line := newSuccession(t, append(hooks.settings(), "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_MCP_ALLOW=127.0.0.1")...)
	k := &talker{t, line, line.now().Tenant(t, "talker", "pro"), ""}
	addModel(t, line.now(), "scripted", p.URL)
	sandbox := []any{map[string]string{"type": "sandbox"}}
	helper := k.begin(map[string]any{"slug": "helper", "tools": sandbox})
	asking := k.begin(map[string]any{"slug": "asking", "tools": sandbox, "tool_policy": map[string]any{"require_confirmation": []string{"sandbox"}}})

	helper.send(message("say hello"), "completed", "hello")
	helper.send(message("run print(6 * 7)"), "completed", "42")
	helper.send(message("recall"), "completed", "I do.")
	if !recalled.Load() {
		t.Error("the model was not given the turns before")
	}
	waits := asking.send(message("run print(5 * 5)"), "requires_action", "").RequiresAction
	if len(waits) != 1 || waits[0].Name != "run_code" || waits[0].Needs != "tool_confirmation" {
		t.Fatalf("%+v", waits)
	}
	killed(t, helper)
	helper.send(message("recall"), "completed", "I do.")
	t.Run("confirmation", func(t *testing.T) { confirmations(t, asking.on(t), waits[0].ToolUseID) })
	t.Run("outcomes", func(t *testing.T) { outcomes(t, k.on(t).begin(map[string]any{"tools": sandbox})) })
	t.Run("policy", func(t *testing.T) {
		denied := k.on(t).begin(map[string]any{"tools": sandbox, "metadata": map[string]any{"tool_policy": map[string]any{"allow_list": []string{}}}})
		denied.send(message("run print(6 * 7)"), "completed", "there is no tool")
	})
	t.Run("MCP servers", func(t *testing.T) { servers(t, k.on(t)) })
	t.Run("webhook", func(t *testing.T) { tells(t, k.on(t), hooks) })
	t.Run("client's tools", func(t *testing.T) { clientsTools(t, k.on(t)) })
	t.Run("streams", func(t *testing.T) { streams(t, helper.on(t)) })
	t.Run("chat", func(t *testing.T) { chats(t, k.on(t)) })
	t.Run("end", func(t *testing.T) { ends(t, helper.on(t)) })
	t.Run("published client", func(t *testing.T) { publishedSessions(t, line.now()) })
}

func (k *talker) on(t *testing.T) *talker { return &talker{t, k.line, k.key, k.path} }

// killed kills the server while a turn runs code, and a client reads its events.
func killed(t *testing.T, k *talker) {
	var before []sessionEvent
	cut, called := make(chan error, 1), make(chan struct{})
	go func() {
		cut <- k.follow(t.Context(), http.MethodPost, "/events?deltas=true", message("run import time; time.sleep(6); print(17 * 3)"), "", func(e sessionEvent) bool {
			if before = append(before, e); e.Type == "tool_use" {
				close(called)
			}
			return true
		})
	}()
	atolltest.Heard(t, called, "a tool is used")
	if a := k.post(message("say no")); a.Status != http.StatusConflict {
		t.Fatalf("a message while a turn runs: %d %s, after %q\n%s", a.Status, a.Body, raws(k.events("")), k.line.now().Log())
	}
	later := message("say after")
	later["queue"] = true
	k.post(later).Into(t, http.StatusAccepted, nil)
	k.line.next(syscall.SIGKILL)
	if err := atolltest.Heard(t, cut, "the stream of the killed server ends"); err == nil {
		t.Error("the stream ended as if the turn had")
	}
	seen := raws(before)
	if len(seen) < 3 {
		t.Fatalf("only %q was told before the end", seen)
	}
	var after []sessionEvent
	if err := k.follow(t.Context(), http.MethodGet, "/events/stream", nil, before[len(before)-1].ID, func(e sessionEvent) bool {
		after = append(after, e)
		return e.Status != "idle"
	}); err != nil {
		t.Fatal(err)
	}
	all := k.events("")
	first := slices.IndexFunc(all, func(e sessionEvent) bool { return e.raw == seen[0] })
	all = all[max(first, 0):]
	all = all[:min(len(all), len(seen)+len(after))]
	if got := raws(all); !slices.Equal(got, append(seen, raws(after)...)) {
		t.Errorf("read again the events are\n%s\nand were\n%s\nthen\n%s", strings.Join(got, "\n"), strings.Join(seen, "\n"), strings.Join(raws(after), "\n"))
	}
	if last := all[len(all)-1]; last.StopReason.Type != "end_turn" || !strings.Contains(all[len(all)-3].Content, "51") {
		t.Errorf("%+v", all[len(all)-3:])
	}
	// The message that was queued before the end is answered.
	answered := false
	k.reach(all[len(all)-1].ID, func(e sessionEvent) bool {
		answered = answered || e.Content == "after"
		return answered && e.Status == "idle"
	})
}

func clientsTools(t *testing.T, k *talker) {
	weather := map[string]any{"type": "custom", "name": "get_weather", "input_schema": map[string]any{"type": "object"}}
	k = k.begin(map[string]any{"tools": []any{weather}})
	turn := k.send(message("weather"), "requires_action", "")
	if len(turn.RequiresAction) != 1 || turn.RequiresAction[0].Needs != "tool_result" {
		t.Fatalf("%+v", turn)
	}
	k.until("requires_action")
	k.send(map[string]any{"type": "tool_result", "tool_use_id": turn.RequiresAction[0].ToolUseID, "content": "snow"}, "completed", "snow")
}

// streams reads a turn as it comes, and goes on after each of its events.
func streams(t *testing.T, k *talker) {
	var seen []sessionEvent
	deltas := ""
	if err := k.follow(t.Context(), http.MethodPost, "/events?deltas=true", message("say one two three"), "", func(e sessionEvent) bool {
		if e.Type == "delta" && e.Of == "message" {
			deltas += e.Text
		}
		seen = append(seen, e)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if deltas != "one two three" {
		t.Errorf("the deltas make %q", deltas)
	}
	told := slices.DeleteFunc(slices.Clone(seen), func(e sessionEvent) bool { return e.Type == "delta" })
	if len(told) != 5 || told[0].Content != "say one two three" || told[1].Status != "running" || told[2].Content != deltas || told[3].Type != "usage" || told[4].Status != "idle" {
		t.Fatalf("%+v", told)
	}
	for i, e := range told[:4] {
		var next sessionEvent
		if err := k.follow(t.Context(), http.MethodGet, "/events/stream", nil, e.ID, func(e sessionEvent) bool { next = e; return false }); err != nil || next.raw != told[i+1].raw {
			t.Errorf("after %s comes %s, %v", e.raw, next.raw, err)
		}
	}
	newest := k.events("&order=desc&types=status,usage")
	if newest[0].raw != told[4].raw || newest[1].raw != told[3].raw {
		t.Errorf("the newest are %+v", newest[:2])
	}
	for query, want := range map[string]int{"?types=status,status": 400, "?types=no": 400, "/stream?after=sevt_1": 400} {
		if a := k.line.now().Must(t, k.key, http.MethodGet, k.path+"/events"+query, nil); a.Status != want {
			t.Errorf("%s: %d %s", query, a.Status, a.Body)
		}
	}
}

// chats talks from the command line.
func chats(t *testing.T, k *talker) {
	u := newAsker(t, k.line.now().URL, k.key)
	run := func(code int, stdin string, args ...string) string {
		t.Helper()
		u.first = args[0]
		return u.ask(code, stdin, args[1:]...)
	}
	out := run(0, "say one\n\nrun print(6 * 7)\ny\nrun print(1)\nnot now\n", "chat", "asking")
	if !strings.HasPrefix(out, "one\n") || !strings.Contains(out, "42") || !strings.Contains(out, "not now") {
		t.Errorf("got %q", out)
	}
	u.told("- python: print(6 * 7)", "10 tokens in", "[to continue: atoll chat --session sess_")
	_, rest, _ := strings.Cut(u.last, "[sess_")
	id, _, _ := strings.Cut("sess_"+rest, "]")
	run(0, "", "session", "send", id, "run", "print(2)")
	u.told("run_code waits for a tool_confirmation: sevt_")
	if out := run(0, "", "session", "approve", id, "--deny", "--reason", "never"); !strings.Contains(out, "never") {
		t.Errorf("got %q", out)
	}
	if out := run(0, "", "session", "events", id, "--types", "tool_confirmation"); !strings.Contains(out, "approved") || !strings.Contains(out, "denied never") {
		t.Errorf("got %q", out)
	}
	run(1, "say one\n"+strings.Repeat("a", 1<<20), "chat", "--session", id)
	u.told("a line must be at most 1.0 MiB")
	interrupts(t, u, id)
	interrupted(t, u, &talker{t, k.line, k.key, "/default/v1/sessions/" + id})
	if out := run(0, "", "session", "show", id); !strings.Contains(out, "idle") {
		t.Errorf("got %q", out)
	}
	run(0, "", "session", "archive", id)
	run(1, "", "session", "send", id, "say no")
	u.told("archived")
	if out := run(0, "", "session", "create", "helper", "--title", "Made here"); !strings.Contains(out, "Made here") {
		t.Errorf("got %q", out)
	}
	if out := run(0, "", "session", "list", "--agent", "asking", "--archived"); !strings.Contains(out, id) {
		t.Errorf("got %q", out)
	}
}

// interrupts has Ctrl-C end a turn, and the conversation go on after it.
func interrupts(t *testing.T, u *asker, id string) {
	u.first = "chat"
	cmd := u.command(t.Context(), "", "--session", id)
	said, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = said, &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(cmd.Start(), said.Close()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	write := func(line string) {
		if _, err := io.WriteString(stdin, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	write("slow")
	if word, err := lines.ReadString(' '); err != nil || word != "word " {
		t.Errorf("%q, %v", word, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	write("say on")
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	text, err := io.ReadAll(lines)
	if err = errors.Join(err, cmd.Wait()); err != nil || !strings.HasSuffix(string(text), "\non\n") || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("%v: %q\n%s", err, text, &errs)
	}
}

// interrupted has Ctrl-C end a turn whose outcome is to be JSON.
func interrupted(t *testing.T, u *asker, k *talker) {
	u.first = "session"
	cmd := u.command(t.Context(), "", "send", strings.TrimPrefix(k.path, "/default/v1/sessions/"), "slow", "--json")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k.until("running")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	var code *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &code) || code.ExitCode() != 130 || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("%v\n%s", err, &errs)
	}
	k.until("idle")
}

// ends interrupts a turn, archives the session while it is followed, and deletes it.
func ends(t *testing.T, k *talker) {
	a, err := k.line.now().Call(t.Context(), k.key, http.MethodPost, k.path+"/events", message("slow"), http.Header{"Prefer": {"respond-async"}})
	if err != nil || a.Status != http.StatusAccepted {
		t.Fatalf("%v %+v", err, a)
	}
	k.until("running")
	k.line.now().Must(t, k.key, http.MethodPost, k.path+"/interrupt", nil).Into(t, http.StatusOK, nil)
	k.until("idle")
	last := k.events("&order=desc")[0]
	if last.StopReason.Type != "interrupted" {
		t.Errorf("%+v", last)
	}
	over := make(chan error, 1)
	go func() {
		over <- k.follow(t.Context(), http.MethodGet, "/events/stream", nil, last.ID, func(sessionEvent) bool { return true })
	}()
	k.line.now().Must(t, k.key, http.MethodPost, k.path+"/archive", nil).Into(t, http.StatusOK, nil)
	if err := atolltest.Heard(t, over, "the stream of the archived session ends"); err != nil {
		t.Error(err)
	}
	if a := k.post(message("say no")); a.Status != http.StatusConflict {
		t.Errorf("a message to an archived session: %d", a.Status)
	}
	k.line.now().Must(t, k.key, http.MethodDelete, k.path, nil).Into(t, http.StatusNoContent, nil)
	if a := k.line.now().Must(t, k.key, http.MethodGet, k.path+"/events", nil); a.Status != http.StatusNotFound {
		t.Errorf("a deleted session: %d", a.Status)
	}
}

// lastItem is the last item of a request's input, as JSON.
func lastItem(body map[string]any) string {
	items, _ := body["input"].([]any)
	raw, _ := json.Marshal(items[len(items)-1])
	return string(raw)
}
