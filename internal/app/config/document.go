package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:generate go run ./gendocs ../../../docs/configuration.md

// pageWidth is the longest line of the page, in characters.
const pageWidth = 120

const pageHead = `<!-- Written by make generate from internal/app/config; edits here are lost. -->
# Configuration

Every setting of Atoll, with its default. A setting comes from its default, then the configuration file, then the
environment, then a flag; the later one wins. ~pool_size~ in the file is ~ATOLL_POOL_SIZE~ in the environment and
~--pool-size~ as a flag of ~atoll serve~, ~atoll run~ and the other commands that use it. An empty variable counts as
not set. ~atoll config~ prints every setting with the value it has:

~~~console
$ ATOLL_MEMORY=1GiB atoll config | grep -E '^(listen|memory):'
listen: 127.0.0.1:8080
memory: 1GiB
~~~

The file is YAML, named by ~--config~ or ~ATOLL_CONFIG~, otherwise ~` + DefaultFile + `~ if it is there and can be
read:

~~~yaml
listen: 127.0.0.1:8080
pool_size: 4
memory: 1GiB
env_vars:
  LANG: C.UTF-8
~~~

~atoll config set~ changes ~model_allow~, ~mcp_allow~, ~webhook_allow~ and ~cors_origins~ of all running servers of an
installation, see [operations](operations.md#settings-that-change-without-a-restart). Such a stored value comes before
flag, environment and file until ~atoll config unset~ removes it.

A name in the file that Atoll does not know is an error. Sizes take units (~512MiB~, ~10MB~, or plain bytes), durations
too (~90s~, ~1h~, or plain seconds).
`

const pageClients = `
## Clients

These variables are read by the commands that talk to a server: ~atoll run~, ~atoll mcp~, and all commands for tenants,
keys, sandboxes, threads and records. The examples of these pages use them too. The server does not read them.

- ~ATOLL_BASE_URL~: server to use, such as ~http://127.0.0.1:8080~. Without it, commands use the server of this
  machine's data folder, or else the last server that you started and that still runs, which
  ~$XDG_STATE_HOME/atoll/last-server.json~ records. ~atoll run~ needs no server.
- ~ATOLL_API_KEY~: key to send to it: a tenant's, the development key or the admin key. No other variable has a key for
  clients. ~--key-file~ comes first. Without either, commands use the keys in this machine's data folder: the admin key
  for an administrator's commands, the development key for all others.
`

// Markdown returns docs/configuration.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(page(pageHead))
	group := ""
	for _, s := range Settings() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n\n", group)
		}
		help := s.Help
		if s.Enum != nil {
			help += " One of `" + strings.Join(s.Enum, "`, `") + "`."
		}
		if s.Secret {
			help += " Never printed."
		}
		text := fmt.Sprintf("**`%s`** (`%s`): ", s.Name, s.Env)
		item(&b, text+strings.ReplaceAll(help+" Default: "+s.Shown, "*", `\*`)) // which would be emphasis
	}
	b.WriteString("\n## Former names\n\nThese names are refused, in the file, in the environment and as flags, with the new name in the message.\n\n")
	for _, old := range slices.Sorted(maps.Keys(renamed)) {
		item(&b, fmt.Sprintf("`%s` is now `%s`", old, renamed[old]))
	}
	b.WriteString(page(pageClients))
	return b.String()
}

// page is text in which ~ stands for the quote that a Go literal cannot hold.
func page(text string) string { return strings.ReplaceAll(text, "~", "`") }

// item writes an item of a list, in lines of at most pageWidth characters where words
// allow it.
func item(b *strings.Builder, text string) {
	width := 0
	for i, word := range strings.Fields(text) {
		switch n := len([]rune(word)) + 1; {
		case i == 0:
			b.WriteString("-")
			width = 1 + n
		case width+n > pageWidth:
			b.WriteString("\n ")
			width = 1 + n
		default:
			width += n
		}
		b.WriteString(" " + word)
	}
	b.WriteString("\n")
}
