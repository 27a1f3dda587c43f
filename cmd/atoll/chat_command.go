package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// chatCommand is a line of 'atoll chat' that starts with a slash.
type chatCommand struct {
	name, args, about string
	run               func(t *chat, ctx context.Context, arg string) error
}

type chatCommandList []chatCommand

// chatCommands are the commands of 'atoll chat'. Leaving is errLeave.
func chatCommands() chatCommandList {
	return chatCommandList{
		{"/help", "", "show this list", func(t *chat, _ context.Context, _ string) error { return t.help() }},
		{"/files", "[FOLDER]", "list the files that the agent shared, or save them to FOLDER", (*chat).files},
		{"/session", "", "show the session's id, status and cost", func(t *chat, ctx context.Context, _ string) error { return t.about(ctx) }},
		{"/exit", "", "leave; --session continues later (also /quit)", func(*chat, context.Context, string) error { return errLeave }},
	}
}

func (l chatCommandList) help() string {
	var b strings.Builder
	for _, c := range l {
		fmt.Fprintf(&b, "  %-17s %s\n", strings.TrimSpace(c.name+" "+c.args), c.about)
	}
	return b.String()
}

func (l chatCommandList) names() []string {
	var out []string
	for _, c := range l {
		out = append(out, c.name)
	}
	return out
}

// command runs a line that starts with a slash.
func (t *chat) command(ctx context.Context, line string) error {
	name, arg, _ := strings.Cut(line, " ")
	name = strings.TrimSpace(name)
	if name == "/quit" {
		name = "/exit"
	}
	for _, c := range chatCommands() {
		if c.name == name {
			return c.run(t, ctx, strings.TrimSpace(arg))
		}
	}
	return fmt.Errorf("unknown command %q; /help lists the commands. To send a message that starts with a slash, put a space before it", cutLine(name))
}

func (t *chat) help() error {
	_, err := io.WriteString(t.err, chatCommands().help())
	return err
}

func (t *chat) about(ctx context.Context) error {
	s, err := t.c.Session(ctx, t.session)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.err, "%s  %s  $%g\n", s.ID, s.Status, s.Usage.CostUsd)
	return err
}
