package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/model"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) modelCommand() *cobra.Command {
	cmd, r := a.remoteGroup("model", "Create, show, change and test models of providers",
		`A provider serves a model through an API that speaks the protocol of
OpenAI's Responses (openai), of Chat Completions (openai-chat), which most
servers of models speak, or of Anthropic's Messages (anthropic).`,
		`  atoll model add acme/large --provider openai --upstream large-2026 --key-file ./key --price-input 2.50 --price-output 10
  atoll model add local --provider openai-chat --base-url http://127.0.0.1:11434/v1 --upstream llama3.2:3b --tenant acme
  atoll model test local
  atoll model list`, adminKeyFile, map[string]completer{"NAME": modelNames})

	create := r.createModel()
	create.Aliases = append(create.Aliases, "create")
	remove := r.deletion("", "NAME", "Delete models", "", func(ctx context.Context, c *sdk.Client, _ []string, name string) error {
		return c.DeleteModel(ctx, name)
	})
	remove.Aliases = append(remove.Aliases, "remove")
	cmd.AddCommand(
		r.command("list", "List models", "", cobra.NoArgs, shows(
			func(ctx context.Context, c *sdk.Client, _ []string) ([]sdk.Model, error) {
				return c.AllModels().All(ctx, 0)
			},
			listing(&r.printer, []any{"NAME", "PROVIDER", "UPSTREAM", "BASE URL", "KEY", "INPUT $/M", "OUTPUT $/M", "TENANTS", "SOURCE"}, func(m sdk.Model) []any {
				return []any{m.Name, m.Provider, m.Upstream, m.BaseURL, onOff(m.HasKey), m.Prices.Input, m.Prices.Output, modelTenants(m), modelSource(m)}
			}))),
		r.command("show NAME", "Show a model", "", cobra.ExactArgs(1), shows(one((*sdk.Client).Model), r.showModel)),
		create, r.updateModel(), remove, r.testModel(), r.modelKeyCommand())
	return cmd
}

func modelNames(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.AllModels().All(ctx, 0)
	return namesOf(all, err, func(m sdk.Model) string { return m.Name })
}

// modelFlags are what can be set of a model.
type modelFlags struct {
	app                        *cli
	cmd                        *cobra.Command
	upstream, baseURL, keyFile string
	prices                     sdk.ModelPrices
	context, maxOutput         int64
	capabilities, tenants      []string
	plans                      []string
	allTenants                 bool
}

func (a *cli) addModelFlags(cmd *cobra.Command) *modelFlags {
	f := &modelFlags{app: a, cmd: cmd}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.upstream, "upstream", "", "the provider's name for the model (the name)")
	flags.StringVar(&f.baseURL, "base-url", "", "base URL of the API (the provider's; required for openai-chat)")
	flags.StringVar(&f.keyFile, "key-file", "", "file with the key for the provider, - for stdin; empty for none")
	flags.StringVar(&f.prices.Input, "price-input", "", "US dollars per million input tokens")
	flags.StringVar(&f.prices.Output, "price-output", "", "US dollars per million output tokens")
	flags.StringVar(&f.prices.CacheRead, "price-cache-read", "", "US dollars per million input tokens that the provider reads from its cache")
	flags.StringVar(&f.prices.CacheWrite, "price-cache-write", "", "US dollars per million input tokens that the provider writes to its cache")
	flags.Int64Var(&f.context, "context", 0, "context size in tokens, input and output together; 0 for unknown")
	flags.Int64Var(&f.maxOutput, "max-output", 0, "most tokens of one answer; 0 for unknown")
	flags.StringSliceVar(&f.capabilities, "can", nil, "capabilities: "+strings.Join(texts(model.Capabilities), ", ")+" ("+strings.Join(texts(model.DefaultCapabilities), ",")+")")
	flags.StringSliceVar(&f.tenants, "tenant", nil, "tenants that may use it, by name or id (all)")
	flags.StringSliceVar(&f.plans, "plan", nil, "plans whose tenants may also use it, by name")
	flags.BoolVar(&f.allTenants, "all-tenants", false, "every tenant may use it")
	cmd.MarkFlagsMutuallyExclusive("tenant", "all-tenants")
	cmd.MarkFlagsMutuallyExclusive("plan", "all-tenants")
	return f
}

// change is what the flags on the command line say; before are the prices so far.
func (f *modelFlags) change(before sdk.ModelPrices) (sdk.ModelChange, error) {
	c := sdk.ModelChange{
		Upstream: ifGiven(f.cmd, "upstream", &f.upstream), BaseURL: ifGiven(f.cmd, "base-url", &f.baseURL), Context: ifGiven(f.cmd, "context", &f.context),
		MaxOutput: ifGiven(f.cmd, "max-output", &f.maxOutput), Capabilities: ifGiven(f.cmd, "can", &f.capabilities), Tenants: ifGiven(f.cmd, "tenant", &f.tenants),
		AllTenants: ifGiven(f.cmd, "all-tenants", &f.allTenants), Plans: ifGiven(f.cmd, "plan", &f.plans),
	}
	for flag, p := range map[string]struct {
		to   *string
		text string
	}{
		"price-input": {&before.Input, f.prices.Input}, "price-output": {&before.Output, f.prices.Output},
		"price-cache-read": {&before.CacheRead, f.prices.CacheRead}, "price-cache-write": {&before.CacheWrite, f.prices.CacheWrite},
	} {
		if f.cmd.Flags().Changed(flag) {
			*p.to, c.Prices = p.text, &before
		}
	}
	if f.cmd.Flags().Changed("key-file") {
		key := ""
		if f.keyFile != "" {
			var err error
			if key, err = f.app.readSmall(f.keyFile); err != nil {
				return c, err
			}
		}
		c.Key = &key
	}
	return c, nil
}

func (r *remote) createModel() *cobra.Command {
	var f *modelFlags
	var provider string
	cmd := r.command("add NAME", "Make a model", "", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		change, err := f.change(sdk.ModelPrices{})
		if err != nil {
			return err
		}
		made, err := c.CreateModel(ctx, sdk.NewModel{
			Name: args[0], Provider: provider, Upstream: change.Upstream, BaseURL: change.BaseURL, Key: change.Key, Prices: change.Prices, Context: change.Context,
			MaxOutput: change.MaxOutput, Capabilities: change.Capabilities, AllTenants: change.AllTenants, Tenants: change.Tenants, Plans: change.Plans,
		})
		if err != nil {
			return err
		}
		return r.showModel(made)
	})
	f = r.app.addModelFlags(cmd)
	cmd.Flags().StringVar(&provider, "provider", "", "protocol of the provider: "+strings.Join(texts(model.Providers()), ", ")+" (required)")
	_ = cmd.MarkFlagRequired("provider") // fails for a flag that there is not
	return cmd
}

func (r *remote) updateModel() *cobra.Command {
	var f *modelFlags
	cmd := r.command("update NAME", "Change a model, from its next request on; omitted settings stay unchanged", "", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		now, err := c.Model(ctx, args[0])
		if err != nil {
			return err
		}
		change, err := f.change(now.Prices)
		if err != nil {
			return err
		}
		if change == (sdk.ModelChange{}) {
			return errNothing
		}
		changed, err := c.ChangeModel(ctx, args[0], change)
		if err != nil {
			return err
		}
		return r.showModel(changed)
	})
	f = r.app.addModelFlags(cmd)
	return cmd
}

func (r *remote) testModel() *cobra.Command {
	var prompt string
	var most int64
	var cmd *cobra.Command
	cmd = r.command("test NAME", "Send a prompt to a model, and show its answer, tokens and cost", "  atoll model test local --prompt 'What is 6*7?'", cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			t, err := c.TestModel(ctx, args[0], sdk.ModelTest{Prompt: ifGiven(cmd, "prompt", &prompt), MaxOutputTokens: ifGiven(cmd, "max-output-tokens", &most)})
			if err != nil {
				return err
			}
			if err := r.showTrial(t); err != nil {
				return err
			}
			if t.Error != nil {
				return errors.New(t.Error.Message)
			}
			return nil
		})
	cmd.Flags().StringVar(&prompt, "prompt", "", "prompt (asks for one word)")
	cmd.Flags().Int64Var(&most, "max-output-tokens", 0, "most tokens of the answer (2048)")
	return cmd
}

func (r *remote) showModel(m sdk.Model) error {
	return r.print(m, func(w io.Writer) {
		row(w, "name", m.Name)
		row(w, "id", m.ID)
		row(w, "provider", m.Provider)
		row(w, "upstream", m.Upstream)
		row(w, "base url", m.BaseURL)
		row(w, "key", onOff(m.HasKey))
		p := m.Prices
		row(w, "prices", fmt.Sprintf("input %s, output %s, cache read %s, cache write %s (US dollars a million tokens)", p.Input, p.Output, p.CacheRead, p.CacheWrite))
		row(w, "context", unknown(m.Context))
		row(w, "max output", unknown(m.MaxOutput))
		row(w, "can", strings.Join(m.Capabilities, ", "))
		row(w, "tenants", modelTenants(m))
		row(w, "source", modelSource(m))
	})
}

func (r *remote) showTrial(t sdk.ModelTrial) error {
	return r.print(t, func(w io.Writer) {
		if t.Reasoning != "" {
			row(w, "reasoning", t.Reasoning)
		}
		row(w, "answer", t.Answer)
		row(w, "stop", t.Stop)
		if u := t.Usage; u != nil {
			row(w, "tokens", fmt.Sprintf("input %d (cache read %d, cache write %d), output %d (reasoning %d)", u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.ReasoningTokens))
		} else {
			row(w, "tokens", "the provider did not tell")
		}
		if t.Cost != nil {
			row(w, "cost", "$"+strconv.FormatFloat(t.Cost.TotalCost, 'f', -1, 64))
		}
		row(w, "time", fmt.Sprintf("%s, began after %s", time.Duration(t.DurationMS)*time.Millisecond, time.Duration(t.FirstTokenMS)*time.Millisecond))
		if t.RequestID != "" {
			row(w, "request", t.RequestID)
		}
	})
}

func unknown(n int64) string {
	if n == 0 {
		return "unknown"
	}
	return fmt.Sprint(n)
}

func modelTenants(m sdk.Model) string {
	if m.AllTenants {
		return "all"
	}
	who := slices.Clone(m.Tenants)
	for _, plan := range m.Plans {
		who = append(who, "plan "+plan)
	}
	return strings.Join(who, ", ")
}

// modelSource is where a model was made, and whether it is used.
func modelSource(m sdk.Model) string {
	switch {
	case m.File != "":
		return m.File
	case m.Overridden:
		return m.Source + ", overridden by a file"
	}
	return m.Source
}
