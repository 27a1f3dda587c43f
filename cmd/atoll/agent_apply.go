package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/atoll-run/atoll/internal/core/wire"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// maxAgentFile bounds a file of agents, in bytes.
const maxAgentFile = 16 << 20

func (r *remote) agentApply() *cobra.Command {
	var model string
	cmd := r.command("apply FILE…", "Create or update agents from files", `  atoll agent apply support.yaml
  cat agents/*.yaml | atoll agent apply -`, cobra.MinimumNArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		var all []sdk.NewAgent
		seen := map[string]bool{}
		for _, path := range args { // all of them are read before one is sent
			read, err := readAgents[sdk.NewAgent](r.app, path)
			if err != nil {
				return err
			}
			for _, in := range read {
				switch {
				case in.Slug == nil || *in.Slug == "":
					return fmt.Errorf("%s: slug is required to apply an agent", path)
				case seen[*in.Slug]:
					return fmt.Errorf("%s: duplicate slug %s", path, *in.Slug)
				}
				seen[*in.Slug] = true
			}
			for i := range read {
				read[i].Model.Name = cmp.Or(model, read[i].Model.Name)
			}
			all = append(all, read...)
		}
		var errs []error
		applied := []sdk.Agent{}
		for _, in := range all {
			now, did, err := applyAgent(ctx, c, in)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", *in.Slug, err))
				continue
			}
			applied = append(applied, now)
			errs = append(errs, r.say("%s: %s", *in.Slug, did))
			for _, w := range now.Warnings {
				errs = append(errs, r.say("%s: warning: %s: %s", *in.Slug, w.Path, w.Message))
			}
		}
		if r.json {
			errs = append(errs, r.print(applied, nil))
		}
		return errors.Join(errs...)
	})
	cmd.Long = cmd.Short + `.

The slug identifies an agent. Omitted fields get their defaults, except headers of
servers: Atoll never shows them, and keeps them while the server's name and URL
stay the same. A file without changes creates no version. A file can have several
documents, separated by ---.`
	cmd.Flags().StringVar(&model, "model", "", "model of all agents; overrides the files")
	return cmd
}

// applyAgent makes an agent or brings it to what in says, and says what it did.
func applyAgent(ctx context.Context, c *sdk.Client, in sdk.NewAgent) (sdk.Agent, string, error) {
	before, err := c.Agent(ctx, *in.Slug)
	if missing(err) {
		made, err := c.CreateAgent(ctx, in)
		return made, "created", err
	}
	if err != nil {
		return before, "", err
	}
	now, err := c.ChangeAgent(ctx, before.ID, wholeChange(in, before.Version))
	switch {
	case err != nil:
		return now, "", err
	case now.Version == before.Version:
		return now, "unchanged", nil
	}
	return now, fmt.Sprintf("updated to version %d", now.Version), nil
}

// wholeChange replaces all that an agent has.
func wholeChange(in sdk.NewAgent, version int64) sdk.AgentChange {
	change := sdk.AgentChange{
		Version: version, Name: &in.Name, Slug: in.Slug, Description: or(in.Description, ""), Model: &in.Model, System: or(in.System, ""), Visibility: or(in.Visibility, "private"),
		Tools: or(in.Tools, []sdk.AgentTool{}), McpServers: or(in.McpServers, []sdk.AgentServer{}), Metadata: &in.Metadata, ToolPolicy: in.ToolPolicy,
		Handoffs: or(in.Handoffs, []sdk.AgentHandoff{}), Skills: or(in.Skills, []any{}), Multiagent: or(in.Multiagent, sdk.AgentMultiagent{}),
	}
	if in.Metadata == nil {
		change.Metadata = &map[string]any{}
	}
	if in.ToolPolicy == nil && in.Metadata["tool_policy"] == nil {
		change.ToolPolicy = &sdk.ToolPolicy{}
	}
	return change
}

func or[T any](v *T, otherwise T) *T {
	if v == nil {
		return &otherwise
	}
	return v
}

// readAgents reads the documents of a file.
func readAgents[T any](a *cli, path string) (all []T, err error) {
	in := a.std.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxAgentFile+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxAgentFile {
		return nil, fmt.Errorf("%s must be at most %s", path, humanBytes(maxAgentFile))
	}
	for documents := yaml.NewDecoder(bytes.NewReader(raw)); ; {
		var document any
		if err := documents.Decode(&document); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if document == nil { // a comment before the first ---
			continue
		}
		if fields, ok := document.(map[string]any); ok {
			if name, ok := fields["model"].(string); ok { // all that most agents say of it
				fields["model"] = map[string]any{"name": name}
			}
		}
		text, err := json.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("%s is not valid JSON: %w", path, err)
		}
		var v T
		if err := (wire.Decoder{Noun: "an agent"}).Decode(text, &v); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	return all, nil
}
