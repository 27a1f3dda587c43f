package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/agent/skilltool"
	"github.com/atoll-run/atoll/internal/app/tty"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (r *remote) sessionSend() *cobra.Command {
	var files []string
	cmd := r.command("send SESSION [MESSAGE…]", "Send a message; the answer goes to stdout, the agent's actions to stderr",
		`  atoll session send sess_0123456789abcdef0123456789abcdef "And by region?"
  atoll session send sess_0123456789abcdef0123456789abcdef --file sales.csv "Which month was the best?"
  git diff | atoll session send sess_0123456789abcdef0123456789abcdef "Review this."`, cobra.MinimumNArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
			text, err := r.app.question(args[1:])
			if err != nil {
				return err
			}
			in := sdk.NewSessionEvent{Type: "message", Content: &text}
			if len(files) > 0 {
				attached := map[string]string{}
				if err := eachFile(files, func(name string, data []byte) { attached[name] = base64.StdEncoding.EncodeToString(data) }); err != nil {
					return err
				}
				in.FilesBase64 = attached
			}
			return r.sessionTurn(ctx, c, args[0], in)
		})
	cmd.Flags().StringArrayVar(&files, "file", nil, "file for the agent's working folder, LOCAL or LOCAL:NAME; may be repeated")
	return cmd
}

func (r *remote) sessionApprove() *cobra.Command {
	var deny bool
	var reason string
	cmd := r.command("approve SESSION [CALL]", "Approve or deny a waiting call; CALL is the id of its event, optional if only one waits",
		`  atoll session approve sess_0123456789abcdef0123456789abcdef
  atoll session approve sess_0123456789abcdef0123456789abcdef --deny --reason "not this file"`, cobra.RangeArgs(1, 2), func(ctx context.Context, c *sdk.Client, args []string) error {
			approve := !deny
			in := sdk.NewSessionEvent{Type: "tool_confirmation", Approve: &approve}
			switch {
			case reason != "" && !deny:
				return wrong("--reason requires --deny")
			case reason != "":
				in.Reason = &reason
			}
			if len(args) == 2 {
				in.ToolUseID = &args[1]
				return r.sessionTurn(ctx, c, args[0], in)
			}
			waits, err := waitingCalls(ctx, c, args[0])
			if err != nil {
				return err
			}
			if len(waits) != 1 {
				return fmt.Errorf("%d calls wait for an answer; 'atoll session events %s' lists them", len(waits), args[0])
			}
			in.ToolUseID = &waits[0].ToolUseID
			return r.sessionTurn(ctx, c, args[0], in)
		})
	cmd.Flags().BoolVar(&deny, "deny", false, "deny the call")
	cmd.Flags().StringVar(&reason, "reason", "", "with --deny: reason, which the model reads")
	return cmd
}

// waitingCalls are those that a session waits with, as far as its last turn says; those that
// were answered since are among them.
func waitingCalls(ctx context.Context, c *sdk.Client, id string) ([]sdk.WaitingCall, error) {
	last, err := c.SessionEvents(id, url.Values{"order": {"desc"}, "types": {"status"}, "limit": {"1"}}).All(ctx, 1)
	if err != nil || len(last) == 0 || last[0].StopReason == nil {
		return nil, err
	}
	return last[0].StopReason.RequiresAction, nil
}

// sessionTurn has a turn shown, and interrupts it with Ctrl-C.
func (r *remote) sessionTurn(ctx context.Context, c *sdk.Client, id string, in sdk.NewSessionEvent) error {
	err := r.wholeTurn(ctx, c, id, in)
	if ctx.Err() == nil {
		return err
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, err = c.InterruptSession(work, id)
	return &exit{exitCancelled, errors.Join(errors.New("interrupted"), err)}
}

func (r *remote) wholeTurn(ctx context.Context, c *sdk.Client, id string, in sdk.NewSessionEvent) error {
	if r.json {
		turn, err := c.SendSession(ctx, id, in)
		if err != nil {
			return err
		}
		return r.print(turn, func(io.Writer) {})
	}
	t := &turnShown{shown: newShown(r.app, false), c: c, session: id}
	end, err := t.turn(ctx, in)
	if err != nil {
		return err
	}
	for _, w := range end.RequiresAction {
		fmt.Fprintf(t.err, "%s waits for a %s: %s\n", cutLine(w.Name), w.Needs, w.ToolUseID)
	}
	return end.failure()
}

// turnShown shows turns of a session.
type turnShown struct {
	*shown
	c       *sdk.Client
	session string
	seen    string            // id of the newest event that was seen, "" for none
	turnID  string            // of the turn that is shown, "" before its first event
	pieces  map[string]string // text shown of messages that have not arrived whole, by item
	came    map[string]string // text of those that the current connection has delivered
	outage  outage
}

// turnEnd is how a turn ended.
type turnEnd struct {
	sdk.SessionStop
	err *sdk.TurnError
}

func (e *turnEnd) failure() error {
	switch {
	case e.Type == "end_turn" || e.Type == "requires_action":
		return nil
	case e.err != nil:
		return fmt.Errorf("the turn did not end (%s): %s", e.err.Code, cutLine(e.err.Message))
	}
	return fmt.Errorf("the turn did not end: %s", e.Type)
}

// turn sends an event and shows the turn that it starts, to its end. When the connection breaks,
// for example because the server restarts, it reconnects and continues after the last event.
func (t *turnShown) turn(ctx context.Context, in sdk.NewSessionEvent) (*turnEnd, error) {
	if t.seen == "" {
		newest, err := t.c.SessionEvents(t.session, url.Values{"order": {"desc"}, "limit": {"1"}}).All(ctx, 1)
		if err != nil {
			return nil, err
		}
		if len(newest) > 0 {
			t.seen = newest[0].ID
		}
	}
	t.turnID, t.pieces, t.outage = "", map[string]string{}, outage{}
	c := t.c.With(sdk.WithReconnect(false)) // show must see the reconnection to recognize repeated pieces
	end, err := t.show(c.StreamSession(ctx, t.session, in))
	for err != nil && t.broke(ctx, err) {
		if err = t.reconnect(ctx, in, err); err == nil {
			end, err = t.show(c.FollowSession(ctx, t.session, t.seen, true))
		}
	}
	t.newline()
	return end, err
}

// maxReconnect limits how long a turn waits for a server that does not answer, or whose streams
// break before they deliver anything.
const maxReconnect = 2 * time.Minute

// outage describes the time since a turn last received anything.
type outage struct {
	began time.Time // zero while the connection works
	pause time.Duration
	heard string // id of the newest event when the outage began
	text  int    // bytes of the pieces shown by then
}

// broke reports whether a stream ended because the client lost the server. Before the turn began, a
// 503 means that the server started nothing, so there is no turn to reconnect to.
func (t *turnShown) broke(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, errGaveUp) || errors.Is(err, errNotReceived) {
		return false
	}
	refused, ok := errors.AsType[*sdk.Error](err)
	switch {
	case !ok:
		return true
	case refused.Status == http.StatusServiceUnavailable:
		return !t.outage.began.IsZero() // reconnecting: the turn may still run
	}
	return refused.Status == http.StatusBadGateway || refused.Status == http.StatusGatewayTimeout
}

// noteOutage starts an outage or continues the current one. It reports whether the connection broke
// again before it delivered anything.
func (t *turnShown) noteOutage() (again bool) {
	text := 0
	for _, piece := range t.pieces {
		text += len(piece)
	}
	o := &t.outage
	if !o.began.IsZero() && o.heard == t.seen && o.text == text {
		return true
	}
	*o = outage{began: time.Now(), pause: firstPause, heard: t.seen, text: text}
	return false
}

// Pauses between attempts to reach the server.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
)

// wait pauses before the next attempt, each time for longer.
func (o *outage) wait(ctx context.Context, cause error) error {
	if time.Since(o.began) > maxReconnect {
		return fmt.Errorf("%w within %s: %w", errGaveUp, maxReconnect, cause)
	}
	timer := time.NewTimer(o.pause)
	defer timer.Stop()
	o.pause = min(2*o.pause, maxPause)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

var (
	errGaveUp      = errors.New("the server did not become available again")
	errNotReceived = errors.New("the server did not receive the message")
)

// reconnect waits until the server answers again. It returns an error if the turn cannot be
// continued: the server is away for too long, or it never received the message.
func (t *turnShown) reconnect(ctx context.Context, in sdk.NewSessionEvent, cause error) error {
	if t.midLine { // stdout stays as it is: the text continues there
		fmt.Fprintln(t.err)
	}
	if t.noteOutage() {
		if err := t.outage.wait(ctx, cause); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(t.err, "[connection lost (%s); reconnecting]\n", cutLine(cause.Error()))
	}
	for {
		newest, err := t.c.SessionEvents(t.session, url.Values{"order": {"desc"}, "limit": {"50"}}).All(ctx, 50)
		switch refused, ok := errors.AsType[*sdk.Error](err); {
		case err == nil && t.turnID == "" && !t.received(newest, in):
			return fmt.Errorf("%w: send it again", errNotReceived)
		case err == nil:
			return nil
		case ok && refused.Status < 500:
			return err
		}
		if err := t.outage.wait(ctx, err); err != nil {
			return err
		}
	}
}

// received reports whether the event that was sent is among the newest ones, newest first.
func (t *turnShown) received(newest []sdk.SessionEvent, sent sdk.NewSessionEvent) bool {
	if i := slices.IndexFunc(newest, func(e sdk.SessionEvent) bool { return e.ID == t.seen }); i >= 0 {
		newest = newest[:i]
	}
	return slices.ContainsFunc(newest, func(e sdk.SessionEvent) bool {
		if sent.Type != "message" {
			return e.Type == sent.Type && *or(e.ToolUseID, "") == *or(sent.ToolUseID, "")
		}
		return e.Type == "message" && *or(e.Role, "") == "user" && *or(e.Content, "") == *or(sent.Content, "")
	})
}

// show shows the events of one connection to the end of the turn.
func (t *turnShown) show(events iter.Seq2[sdk.SessionStreamed, error]) (*turnEnd, error) {
	end := &turnEnd{}
	t.came = map[string]string{}
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		if ev.Turn != nil { // other calls wait, too
			return &turnEnd{SessionStop: sdk.SessionStop{Type: ev.Turn.Status, RequiresAction: ev.Turn.RequiresAction}}, nil
		}
		if of := *or(ev.TurnID, ""); ev.ID != "" {
			if t.seen = ev.ID; t.turnID == "" {
				t.turnID = of
			} else if of != t.turnID {
				continue // it runs beside the turn
			}
		}
		switch {
		case ev.Type == "delta" && ev.Of == "message":
			t.piece(*or(ev.ItemID, ""), ev.Text)
		case ev.Type == "delta":
		case ev.Type == "message" && *or(ev.Role, "") == "assistant":
			t.whole(*or(ev.Content, ""), t.pieces[*or(ev.ItemID, "")])
		case ev.Type == "error":
			end.err = ev.Error
		case ev.Type == "status" && ev.StopReason != nil:
			end.SessionStop = *ev.StopReason
			return end, nil
		default:
			t.event(&ev.SessionEvent)
		}
	}
	return nil, errors.New("the server closed the stream before the turn ended")
}

// piece shows a piece of a message. A connection that starts during a message gets all of its pieces,
// so piece skips the text that the previous connection delivered.
func (t *turnShown) piece(item, text string) {
	came, shown := t.came[item]+text, t.pieces[item]
	t.came[item] = came
	if len(came) < len(shown) && strings.HasPrefix(shown, came) {
		return
	}
	rest, ok := strings.CutPrefix(came, shown)
	if !ok {
		t.newline()
		rest = came
	}
	t.pieces[item] = came
	t.text(rest)
}

// whole shows a message of which some text was shown before. Pieces can be missing or stale when
// the connection broke.
func (t *turnShown) whole(text, shown string) {
	rest, ok := strings.CutPrefix(text, shown)
	if !ok {
		t.newline()
		rest = text
	}
	t.text(rest)
	t.newline()
}

// text shows what the agent says.
func (t *turnShown) text(text string) {
	if text == "" {
		return
	}
	if !t.raw {
		text = tty.Printable(text)
	}
	t.midLine = !strings.HasSuffix(text, "\n")
	_, _ = io.WriteString(t.out, text)
}

// event shows what the agent does.
func (t *turnShown) event(e *sdk.SessionEvent) {
	switch e.Type {
	case "thinking":
		t.newline()
		t.say("thought", *or(e.Content, ""))
	case "tool_use":
		if *or(e.Name, "") == skilltool.PlanTool { // the plan is an event of its own
			return
		}
		t.newline()
		var in struct{ Language, Code string }
		if _ = json.Unmarshal([]byte(*or(e.Arguments, "")), &in); in.Code != "" {
			t.say(cutLine(*or(&in.Language, "code")), in.Code)
			return
		}
		t.say(cutLine(*or(e.Name, "")), *or(e.Arguments, ""))
	case "tool_result":
		t.body("  ", *or(e.Content, ""))
	case "plan", "review", "outcome_evaluation_end":
		t.newline()
		t.body("", aboutEvent(e))
	case "thread_created", "thread_idle", "thread_terminated", "speaker":
		t.newline()
		t.body("", aboutEvent(e))
	case "usage":
		if u := e.Usage; u != nil {
			t.newline()
			fmt.Fprintf(t.err, "[%d tokens in, %d out, $%g]\n", u.InputTokens, u.OutputTokens, u.CostUsd)
		}
	}
}

// planText is a plan as a list of what is done and what is not.
func planText(p *sdk.SessionPlan) string {
	marks := map[string]string{"completed": "[x]", "in_progress": "[>]", "cancelled": "[-]"}
	var lines []string
	for _, s := range p.Steps {
		lines = append(lines, cmp.Or(marks[s.Status], "[ ]")+" "+s.Step)
	}
	if p.WhyOpen != nil {
		lines = append(lines, "open, because: "+*p.WhyOpen)
	}
	return strings.Join(lines, "\n")
}

// aboutEvent is what an event says, for a line of a list.
func aboutEvent(e *sdk.SessionEvent) string {
	switch {
	case e.Plan != nil:
		return planText(e.Plan)
	case e.Review != nil:
		return fmt.Sprintf("review %d: %.2f of %.2f. %s", e.Review.Iteration, e.Review.Score, e.Review.Threshold, *or(e.Review.Error, e.Review.Feedback))
	case e.File != nil:
		return fmt.Sprintf("%s, %s: %s", e.File.Filename, humanBytes(e.File.Bytes), e.File.ID)
	case e.Evaluation != nil:
		return fmt.Sprintf("evaluation %d: %s. %s", e.Evaluation.Iteration+1, *or(e.Evaluation.Result, "in progress"), *or(e.Evaluation.Explanation, ""))
	case e.Speaker != nil:
		return e.Speaker.Name + " speaks"
	case e.Thread != nil:
		return aboutThread(e)
	case e.Error != nil:
		return e.Error.Code + ": " + e.Error.Message
	case e.StopReason != nil:
		return e.StopReason.Type
	case e.Status != nil:
		return *e.Status
	case e.Usage != nil:
		return fmt.Sprintf("%d tokens in, %d out, $%g", e.Usage.InputTokens, e.Usage.OutputTokens, e.Usage.CostUsd)
	case e.Approve != nil && *e.Approve:
		return "approved"
	case e.Approve != nil:
		return "denied " + *or(e.Reason, "")
	case e.Name != nil:
		return *e.Name + " " + *or(e.Arguments, "")
	case e.Role != nil:
		return *e.Role + ": " + *or(e.Content, "")
	}
	return *or(e.Content, "")
}

// aboutThread is what an event of a hand-off says.
func aboutThread(e *sdk.SessionEvent) string {
	switch e.Type {
	case "thread_created":
		return e.Thread.Name + " works in " + *or(e.Thread.ThreadID, "")
	case "thread_message_sent":
		return "to " + e.Thread.Name + ": " + *or(e.Content, "")
	case "thread_message_received":
		return "from " + e.Thread.Name + ": " + *or(e.Content, "")
	case "thread_terminated":
		return e.Thread.Name + " was ended: " + or(e.Error, sdk.TurnError{}).Code
	}
	return e.Thread.Name + " is done"
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return first
}
