package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// askFlags are what 'atoll ask' is asked for.
type askFlags struct {
	remote
	model, instructions string
	tools               []string
	files               []string
	out                 string
	previous            string
	goOn, force         bool
	steps               int64
}

func (a *cli) askCommand() *cobra.Command {
	f := &askFlags{remote: remote{target: target{app: a, local: devKeyFile}, printer: printer{out: a.std.out}}}
	cmd := &cobra.Command{
		Use:   "ask [QUESTION…]",
		Short: "Ask a model that can run code in a sandbox",
		Long: `Ask a model that can run code in a sandbox. Its answer comes on stdout as it is
written; the code that it runs, what came out and its other calls of tools are
shown on stderr, shortened.

The question is what follows, and the stdin of this command unless that is a
terminal. --file puts a file into the working folder of the sandbox, under its
own name or under NAME; a model that reads files sees it, too. Files that the
model shares are saved to the folder --out. --continue goes on from the last
answer of this user and server, with the same sandbox; --previous from any.

Ctrl-C ends the response, with the program that runs.` + f.help() + `

Exit codes: 0 answered, 1 not answered or not to the end, 2 a wrong command line,
130 after Ctrl-C.`,
		Example: `  atoll ask "What is the 40th prime?"
  atoll ask --file sales.csv --out . "Chart the revenue by month and share the chart."
  atoll ask --continue "And by region?"
  git diff | atoll ask --tool none "Write a commit message."`,
		Args: cobra.ArbitraryArgs,
		RunE: failing(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return f.explain(a.ask(ctx, f, args))
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.model, "model", "m", "", "the model, of those that GET /v1/models lists (the only one)")
	flags.StringVar(&f.instructions, "instructions", "", "what the model is told ahead of the question")
	flags.StringSliceVar(&f.tools, "tool", []string{"sandbox"}, "tools of the server that it may use, by their type; none for none")
	flags.StringArrayVar(&f.files, "file", nil, "file for it, LOCAL or LOCAL:NAME; may be repeated")
	flags.StringVar(&f.out, "out", "", "folder that files which it shares are saved to")
	flags.BoolVar(&f.force, "force", false, "let --out replace files of the folder")
	flags.BoolVarP(&f.goOn, "continue", "c", false, "go on from the last answer")
	flags.StringVar(&f.previous, "previous", "", "go on from the response with this id")
	flags.Int64Var(&f.steps, "max-steps", 0, "how often the model may be asked (100)")
	f.target.addFlags(flags)
	flags.BoolVar(&f.json, "json", false, "print the response as JSON when it has ended, in place of its text")
	cmd.MarkFlagsMutuallyExclusive("continue", "previous")
	return cmd
}

func (a *cli) ask(ctx context.Context, f *askFlags, args []string) error {
	question, err := a.question(args)
	if err != nil {
		return err
	}
	server, err := f.find()
	if err != nil {
		return err
	}
	in := sdk.CreateResponse{Model: &f.model}
	if in.Input, err = askInput(question, f.files); err != nil {
		return err
	}
	if f.instructions != "" {
		in.Instructions = &f.instructions
	}
	if f.steps != 0 {
		in.MaxSteps = &f.steps
	}
	askTools(&in, f.tools)
	if f.goOn {
		if f.previous, err = a.lastResponse(server.url); err != nil {
			return err
		}
	}
	if f.previous != "" {
		in.PreviousResponseID = &f.previous
	}
	c := sdk.New(server.url, server.key)
	if f.model == "" {
		if f.model, err = onlyModel(ctx, c); err != nil {
			return err
		}
	}
	return a.answer(ctx, c, server.url, f, in)
}

// interpreter is a tool whose items have what came out only where that is asked for.
const interpreter = "code_interpreter"

// askTools asks for tools by their types.
func askTools(in *sdk.CreateResponse, kinds []string) {
	if slices.Equal(kinds, []string{"none"}) {
		return
	}
	tools := make([]any, len(kinds))
	for i, kind := range kinds {
		tool := map[string]any{"type": kind}
		if kind == interpreter {
			tool["container"] = map[string]string{"type": "auto"}
			in.Include = &[]string{interpreter + "_call.outputs"}
		}
		tools[i] = tool
	}
	in.Tools = &tools
}

// onlyModel is the model of a server that has one.
func onlyModel(ctx context.Context, c *sdk.Client) (string, error) {
	all, err := c.Models(ctx)
	if err != nil {
		return "", err
	}
	switch len(all.Data) {
	case 0:
		return "", errors.New("the server has no model for this key; the operator makes one with 'atoll model add'")
	case 1:
		return all.Data[0].ID, nil
	}
	names := make([]string, len(all.Data))
	for i, m := range all.Data {
		names[i] = m.ID
	}
	return "", wrong("say with --model which one: %s", strings.Join(names, ", "))
}

// answer has a response shown as it comes, and its files saved.
func (a *cli) answer(ctx context.Context, c *sdk.Client, server string, f *askFlags, in sdk.CreateResponse) error {
	s := newShown(a, f.json)
	id := ""
	for ev, err := range c.StreamResponse(ctx, in) {
		if err != nil {
			s.newline()
			return a.stopAsking(ctx, c, id, err)
		}
		if ev.Response != nil && id == "" {
			id = ev.Response.ID
		}
		if err := s.event(&ev.ResponseEvent, ev.Raw); err != nil {
			return err
		}
		if ev.Response == nil || ev.Response.Status == "in_progress" || ev.Response.Status == "queued" {
			continue
		}
		a.rememberResponse(server, ev.Response)
		saved := a.saveShared(ctx, c, id, f.out, f.force, s.shared)
		return errors.Join(s.end(ev.Response, ev.Raw), saved)
	}
	return errors.New("the server's stream had no end of the response")
}

// stopAsking has the server end a response that is not followed any more.
func (a *cli) stopAsking(ctx context.Context, c *sdk.Client, id string, err error) error {
	if ctx.Err() == nil || id == "" {
		return interrupted(ctx, err)
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, err = c.CancelResponse(work, id)
	if refused, ok := errors.AsType[*sdk.Error](err); err == nil || ok && refused.Status == http.StatusBadRequest { // it had ended
		return &exit{exitCancelled, errors.New("cancelled")}
	}
	return &exit{exitCancelled, fmt.Errorf("cancelled here; the server ends the response when it notices: %w", err)}
}

// interrupted tells Ctrl-C from a failure.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exit{exitCancelled, errors.New("cancelled")}
	}
	return err
}
