package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/tty"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) chatCommand() *cobra.Command {
	r := &remote{target: target{app: a, local: devKeyFile}, printer: printer{out: a.std.out}, words: map[string]completer{"AGENT": agentNames}}
	var session string
	cmd := &cobra.Command{
		Use:   "chat [AGENT]",
		Short: "Talk to an agent in the terminal",
		Long: `Talk to an agent in the terminal. Each line is a message. Answers stream to stdout;
tool calls appear on stderr, shortened. When a call needs your approval, answer
y to approve; any other answer denies it and becomes the reason.

In a terminal the arrow keys edit the line and walk the history, and Tab
completes commands. Ctrl-C stops the current turn and keeps the session; a second
Ctrl-C, Ctrl-D or /exit leaves. --session continues the conversation later. When
the connection breaks, chat reconnects and continues the turn.

A line that starts with / is a command and never reaches the model:

` + chatCommands().help() + r.help(),
		Example: `  atoll chat support
  atoll chat --session sess_0123456789abcdef0123456789abcdef`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: r.complete,
		RunE: failing(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if (len(args) == 1) == (session != "") {
				return wrong("no AGENT given; name one, or continue a session with --session")
			}
			c, err := r.client()
			if err != nil {
				return err
			}
			if session == "" {
				made, err := c.CreateSession(ctx, sdk.NewSession{AgentID: args[0]})
				if err != nil {
					return r.explain(err)
				}
				session = made.ID
			}
			return r.explain(a.chat(ctx, c, session))
		}),
	}
	cmd.Flags().StringVar(&session, "session", "", "id of the session to continue")
	r.target.addFlags(cmd.Flags())
	return cmd
}

// maxLine bounds a message in bytes.
const maxLine = 1 << 20

// chat is a conversation in the terminal.
type chat struct {
	turnShown
	app     *cli
	editor  *lineEditor // nil unless stdin is a terminal
	lines   <-chan string
	unread  error // why there are no more lines, once lines is closed; nil for the end of stdin
	signals <-chan os.Signal
	last    time.Time // of the last Ctrl-C
}

var (
	errInterrupted = errors.New("Ctrl-C")
	errLeave       = errors.New("the user ended the chat")
	errRefused     = errors.New("the server rejected it")
	errBusy        = errors.New("the server cannot accept it now")
)

func (a *cli) chat(ctx context.Context, c *sdk.Client, session string) error {
	// The first Ctrl-C ends other commands.
	signals := make(chan os.Signal, 8)
	signal.Reset(os.Interrupt)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	lines, read := make(chan string), make(chan struct{})
	defer close(read)
	t := &chat{turnShown: turnShown{shown: newShown(a, false), c: c, session: session}, app: a, lines: lines, signals: signals}
	out, seen := a.std.err.(*os.File) // the editor draws the line on stderr
	if in, ok := a.std.in.(*os.File); ok && isTerminal(in) && seen && isTerminal(out) {
		history := openHistory(a.historyPath())
		t.editor = newLineEditor(in, t.err, history, chatCommands().names())
		defer func() {
			if err := history.save(); err != nil {
				fmt.Fprintf(t.err, "atoll: cannot save the history: %v\n", err)
			}
		}()
		close(lines)
	} else {
		go t.scan(a.std.in, lines, read)
	}
	fmt.Fprintf(t.err, "[%s] /help lists the commands\n", session)
	err := t.talk(ctx)
	if errors.Is(err, errLeave) || errors.Is(err, errInterrupted) {
		fmt.Fprintf(t.err, "[to continue: atoll chat --session %s]\n", session)
		return nil
	}
	return err
}

// scan passes the lines of stdin on until it ends or stop is closed.
func (t *chat) scan(stdin io.Reader, lines chan<- string, stop <-chan struct{}) {
	defer close(lines)
	in := bufio.NewScanner(stdin)
	in.Buffer(nil, maxLine)
	for in.Scan() {
		select {
		case lines <- in.Text():
		case <-stop:
			return
		}
	}
	if t.unread = in.Err(); errors.Is(t.unread, bufio.ErrTooLong) {
		t.unread = fmt.Errorf("a line must be at most %s", humanBytes(maxLine))
	}
}

// talk has messages answered until there are no more.
func (t *chat) talk(ctx context.Context) error {
	waits, err := t.waiting(ctx)
	if err != nil {
		return err
	}
	for {
		before := waits
		if len(waits) == 0 {
			waits, err = t.message(ctx)
		} else if waits, err = t.answer(ctx, waits[0]); errors.Is(err, errRefused) { // another client answered the call
			waits = before[1:]
		}
		switch {
		case errors.Is(err, errNotReceived), errors.Is(err, errBusy): // the server did not start the turn: ask the user again
			waits = before
		case err != nil && !errors.Is(err, errRefused):
			return err
		}
	}
}

// waiting are the calls that wait since an earlier conversation.
func (t *chat) waiting(ctx context.Context) ([]sdk.WaitingCall, error) {
	s, err := t.c.Session(ctx, t.session)
	if err != nil || s.Status != "requires_action" {
		return nil, err
	}
	return waitingCalls(ctx, t.c, t.session)
}

func (t *chat) message(ctx context.Context) ([]sdk.WaitingCall, error) {
	line, err := t.ask(ctx, "> ", true)
	if err != nil || strings.TrimSpace(line) == "" {
		return nil, err
	}
	if strings.HasPrefix(line, "/") {
		err := t.command(ctx, line)
		if err != nil && !errors.Is(err, errLeave) {
			fmt.Fprintf(t.err, "atoll: %s\n", tty.Printable(err.Error())) // the conversation continues
			err = nil
		}
		return nil, err
	}
	return t.send(ctx, sdk.NewSessionEvent{Type: "message", Content: &line})
}

// files lists what the agent has shared, or saves it to a folder.
func (t *chat) files(ctx context.Context, folder string) error {
	all, err := t.c.SessionFiles(t.session).All(ctx, 0)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		fmt.Fprintln(t.err, "[no files]")
		return nil
	case folder != "":
		return t.app.saveSessionFiles(ctx, t.c, t.session, folder, false, all)
	}
	for _, f := range all {
		fmt.Fprintf(t.err, "%s  %s  %s\n", f.ID, humanBytes(f.Bytes), tty.Printable(f.Filename))
	}
	return nil
}

// answer asks what is to be said to a call that waits.
func (t *chat) answer(ctx context.Context, w sdk.WaitingCall) ([]sdk.WaitingCall, error) {
	in := sdk.NewSessionEvent{Type: w.Needs, ToolUseID: &w.ToolUseID}
	question := "the result of " + cutLine(w.Name) + ": "
	if w.Needs == "tool_confirmation" {
		question = "approve " + cutLine(w.Name) + "? [y, or why not] "
	}
	line, err := t.ask(ctx, question, false)
	if errors.Is(err, errInterrupted) {
		_, err := t.c.InterruptSession(ctx, t.session)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if w.Needs != "tool_confirmation" {
		in.Content = &line
		return t.send(ctx, in)
	}
	said := strings.TrimSpace(line)
	yes := strings.EqualFold(said, "y") || strings.EqualFold(said, "yes")
	if in.Approve = &yes; !yes && said != "" && !strings.EqualFold(said, "n") && !strings.EqualFold(said, "no") {
		in.Reason = &said
	}
	return t.send(ctx, in)
}

// ask reads a line; remember keeps it in the history. It returns errLeave at the end of stdin.
func (t *chat) ask(ctx context.Context, prompt string, remember bool) (string, error) {
	if t.editor != nil {
		line, err := t.editor.read(ctx, prompt, remember)
		if errors.Is(err, io.EOF) {
			err = errLeave
		}
		return line, err
	}
	for {
		select {
		case line, ok := <-t.lines:
			if !ok {
				return "", cmp.Or(t.unread, errLeave)
			}
			return line, nil
		case <-t.signals:
			if t.again() {
				return "", errInterrupted
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// again reports whether a SIGINT is another Ctrl-C than the one before.
func (t *chat) again() bool {
	was := t.last
	t.last = time.Now()
	return t.last.Sub(was) > tty.OneCtrlC
}

// send has a turn shown, which the first Ctrl-C interrupts.
func (t *chat) send(ctx context.Context, in sdk.NewSessionEvent) ([]sdk.WaitingCall, error) {
	type ended struct {
		end *turnEnd
		err error
	}
	over := make(chan ended, 1)
	go func() {
		end, err := t.turn(ctx, in)
		over <- ended{end, err}
	}()
	interrupts := 0
	for {
		select {
		case e := <-over:
			if refused, ok := errors.AsType[*sdk.Error](e.err); ok && (refused.Status < 500 || refused.Status == http.StatusServiceUnavailable) {
				fmt.Fprintf(t.err, "atoll: %s\n", cutLine(e.err.Error()))
				if refused.Status == http.StatusServiceUnavailable || refused.Status == http.StatusTooManyRequests {
					return nil, errBusy
				}
				return nil, errRefused
			}
			if errors.Is(e.err, errNotReceived) {
				fmt.Fprintf(t.err, "atoll: %s\n", tty.Printable(e.err.Error()))
			}
			if e.err != nil {
				return nil, e.err
			}
			if err := e.end.failure(); err != nil {
				fmt.Fprintf(t.err, "atoll: %s\n", tty.Printable(err.Error()))
			}
			return e.end.RequiresAction, nil
		case <-t.signals:
			if !t.again() {
				continue
			}
			if interrupts++; interrupts > 1 {
				return nil, &exit{exitCancelled, errors.New("cancelled; the turn continues until the server stops it")}
			}
			if _, err := t.c.InterruptSession(ctx, t.session); err != nil {
				return nil, err
			}
		}
	}
}
