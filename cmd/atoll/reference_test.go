package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/atoll-run/atoll/internal/app/config"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md")

const referencePage = "../../docs/reference/cli.md"

// TestReference checks that docs/reference/cli.md describes every command and flag; -update writes
// the page.
func TestReference(t *testing.T) {
	root := newRoot(func(string) string { return "" }, stdio{strings.NewReader(""), io.Discard, io.Discard})
	root.InitDefaultCompletionCmd()
	var page strings.Builder
	page.WriteString("# Command line\n\nLook up a command of `atoll`, its arguments and flags. `atoll help COMMAND` shows the same text.\n\n")
	page.WriteString("Commands that start a server or a program also take every [setting](settings.md) as a flag: `pool_size` is `--pool-size`.\n")
	for _, c := range root.Commands() {
		writeCommand(&page, c, 2)
	}
	page.WriteString("\n<!-- Written by go test ./cmd/atoll -run TestReference -update -->\n")
	if *update {
		if err := os.WriteFile(referencePage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if string(shown) != page.String() {
		t.Error("docs/reference/cli.md is out of date; run go test ./cmd/atoll -run TestReference -update")
	}
}

func writeCommand(w io.Writer, c *cobra.Command, level int) {
	if !c.IsAvailableCommand() && !c.HasAvailableSubCommands() || c.Name() == "help" {
		return
	}
	fmt.Fprintf(w, "\n%s %s\n\n%s.\n", strings.Repeat("#", min(level, 3)), c.CommandPath(), strings.TrimSuffix(c.Short, "."))
	if long := strings.TrimPrefix(strings.TrimPrefix(cell(c.Long), cell(c.Short)), ". "); long != "" {
		fmt.Fprintf(w, "\n%s\n", long)
	}
	if c.Runnable() {
		fmt.Fprintf(w, "\n```text\n%s\n", c.UseLine())
		if c.Example != "" {
			fmt.Fprintf(w, "\n%s\n", strings.TrimRight(c.Example, "\n"))
		}
		fmt.Fprint(w, "```\n")
	}
	writeFlags(w, c.LocalNonPersistentFlags())
	for _, sub := range c.Commands() {
		writeCommand(w, sub, level+1)
	}
}

// writeFlags lists a command's flags without settings, which have a page of their own.
func writeFlags(w io.Writer, flags *pflag.FlagSet) {
	settings := map[string]bool{"help": true}
	for _, s := range config.Settings() {
		settings[s.Flag] = true
	}
	header := "\n| flag | default | meaning |\n| --- | --- | --- |\n"
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || settings[f.Name] {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		spelling := "--" + f.Name
		if f.Shorthand != "" {
			spelling = "-" + f.Shorthand + ", " + spelling
		}
		if name != "" {
			spelling += " " + name
		}
		value := f.DefValue
		switch value {
		case "", "false", "[]", "0", "0s":
			value = ""
		default:
			value = "`" + value + "`"
		}
		fmt.Fprintf(w, "%s| `%s` | %s | %s |\n", header, spelling, value, cell(usage))
		header = ""
	})
}

// cell escapes text for a table cell.
func cell(text string) string {
	text = strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
	return strings.Join(strings.Fields(text), " ")
}
