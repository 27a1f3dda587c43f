package session_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestGoClient drives Anthropic's client for Go: a session, a stream that is open before the
// message, pages of events.
func TestGoClient(t *testing.T) {
	k := open(t, `{}`)
	s := httptest.NewServer(k.Server.Server)
	t.Cleanup(s.Close)
	client := anthropic.NewClient(option.WithBaseURL(s.URL), option.WithAPIKey(httpapitest.Key), option.WithMaxRetries(0))
	ctx, sessions := t.Context(), client.Beta.Sessions
	v, err := sessions.New(ctx, anthropic.BetaSessionNewParams{
		Agent: anthropic.BetaSessionNewParamsAgentUnion{OfString: anthropic.String("helper")}, EnvironmentID: k.Caller.Environment.ID, Title: anthropic.String("From Go"),
	})
	if err != nil || v.Title != "From Go" || v.Agent.Name != "Helper" || v.Status != "idle" {
		t.Fatalf("%+v, %v", v, err)
	}
	stream := sessions.Events.StreamEvents(ctx, v.ID, anthropic.BetaSessionEventStreamParams{EventDeltas: []anthropic.BetaManagedAgentsDeltaType{"agent.message"}})
	defer stream.Close()
	sent, err := sessions.Events.Send(ctx, v.ID, anthropic.BetaSessionEventSendParams{Events: []anthropic.BetaManagedAgentsEventParamsUnion{{
		OfUserMessage: &anthropic.BetaManagedAgentsUserMessageEventParams{
			Type:    "user.message",
			Content: []anthropic.BetaManagedAgentsUserMessageEventParamsContentUnion{{OfText: &anthropic.BetaManagedAgentsTextBlockParam{Type: "text", Text: "call run_code"}}},
		},
	}}})
	if err != nil || len(sent.Data) != 1 {
		t.Fatalf("%+v, %v", sent, err)
	}
	var streamed []string
	for stream.Next() {
		e := stream.Current()
		if !strings.HasPrefix(e.Type, "event_") {
			streamed = append(streamed, e.Type)
		}
		if e.Type == "session.status_idle" {
			break
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	var listed []string
	pages := sessions.Events.ListAutoPaging(ctx, v.ID, anthropic.BetaSessionEventListParams{Limit: anthropic.Int(3)})
	for pages.Next() {
		listed = append(listed, pages.Current().Type)
	}
	want := "user.message session.status_running span.model_request_start agent.tool_use span.model_request_end agent.tool_result" +
		" span.model_request_start agent.message span.model_request_end session.usage session.status_idle"
	if got := strings.Join(listed, " "); pages.Err() != nil || got != want || strings.Join(streamed, " ") != want {
		t.Errorf("listed %s, streamed %s, %v", got, streamed, pages.Err())
	}
	all := sessions.ListAutoPaging(ctx, anthropic.BetaSessionListParams{Limit: anthropic.Int(1), Statuses: []string{"idle", "running"}})
	n := 0
	for all.Next() {
		n++
	}
	if gone, err := sessions.Delete(ctx, v.ID, anthropic.BetaSessionDeleteParams{}); err != nil || gone.ID != v.ID || all.Err() != nil || n != 2 {
		t.Errorf("%+v, %v; %d sessions, %v", gone, err, n, all.Err())
	}
}
