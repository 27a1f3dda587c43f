package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// completeTime bounds how long a shell waits for names from a server.
const completeTime = 3 * time.Second

// completer returns what an argument may be; args are those before it.
type completer func(ctx context.Context, c *sdk.Client, args []string) ([]string, error)

// complete completes an argument of a subcommand in a shell. The word in the place
// of the argument in the command's usage says what it is: r.words has the completer
// for it, and FILE is a file here.
func (r *remote) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	word, many := usageWord(cmd.Use, len(args))
	switch {
	case word == "FILE":
		return nil, cobra.ShellCompDirectiveDefault
	case r.words[word] == nil || word == "NAME" && cmd.Name() == "create": // a new one
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found := slices.DeleteFunc(r.names(cmd.Context(), r.words[word], args), func(name string) bool {
		return !strings.HasPrefix(name, typed) || many && slices.Contains(args, name)
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}

// usageWord is the word for an argument in a usage line such as "rm TENANT NAME…",
// where the last one may stand for any number; "" where there is none.
func usageWord(use string, at int) (word string, many bool) {
	words := strings.Fields(strings.ReplaceAll(use, "[flags] ", ""))[1:]
	if len(words) == 0 {
		return "", false
	}
	many = strings.Contains(words[len(words)-1], "…")
	if at >= len(words) && !many {
		return "", false
	}
	return strings.Trim(words[min(at, len(words)-1)], "[]…"), many
}

// names asks a completer. A server that does not answer has no names: a shell has
// no place for errors.
func (r *remote) names(ctx context.Context, find completer, args []string) []string {
	c, err := r.client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	found, err := find(ctx, c, args)
	if err != nil {
		return nil
	}
	return found
}

// namesOf returns the names of what a call listed.
func namesOf[T any](all []T, err error, name func(T) string) ([]string, error) {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = name(v)
	}
	return out, err
}
