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
		Long: `Ask a model that can run code in a sandbox. The command streams the answer to
stdout, and shows the code, its output and other tool calls, shortened, on stderr.

The question is the arguments, followed by stdin unless that is a terminal.
--file copies a file into the sandbox's working folder, under its own name or
under NAME, and shows it to models that read files. --out is the folder for
files that the model shares. --continue continues from your last answer on this
server, with the same sandbox; --previous continues from any response.

Ctrl-C cancels the response and stops its program.` + f.help() + `

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
	flags.StringVarP(&f.model, "model", "m", "", "model; GET /v1/models lists them (the only one)")
	flags.StringVar(&f.instructions, "instructions", "", "system prompt")
	flags.StringSliceVar(&f.tools, "tool", []string{"sandbox"}, "types of the server's tools that it may use; none for no tools")
	flags.StringArrayVar(&f.files, "file", nil, "file to upload, LOCAL or LOCAL:NAME; may be repeated")
	flags.StringVar(&f.out, "out", "", "folder for files that the model shares")
	flags.BoolVar(&f.force, "force", false, "let --out replace existing files")
	flags.BoolVarP(&f.goOn, "continue", "c", false, "continue from the last answer")
	flags.StringVar(&f.previous, "previous", "", "continue from the response with this id")
	flags.Int64Var(&f.steps, "max-steps", 0, "most requests to the model (100)")
	f.target.addFlags(flags)
	flags.BoolVar(&f.json, "json", false, "print the ended response as JSON instead of its text")
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
		return "", errors.New("this key can use no model; ask the operator to add one with 'atoll model add'")
	case 1:
		return all.Data[0].ID, nil
	}
	names := make([]string, len(all.Data))
	for i, m := range all.Data {
		names[i] = m.ID
	}
	return "", wrong("more than one model is available; choose one with --model: %s", strings.Join(names, ", "))
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
	return errors.New("the server's stream ended before the response did")
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
	return &exit{exitCancelled, fmt.Errorf("cancelled; could not tell the server, which stops the response when it notices: %w", err)}
}

// interrupted tells Ctrl-C from a failure.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exit{exitCancelled, errors.New("cancelled")}
	}
	return err
}
