package config

import (
	"fmt"
	"strings"
)

//go:generate go run ./gendocs ../../../docs/reference/settings.md

const pageHead = `# Settings

Look up a setting, its default and its names. ~atoll config~ prints every setting with its current value:

~~~console
$ ATOLL_MEMORY=1GiB atoll config | grep -E '^(listen|memory):'
listen: 127.0.0.1:8080
memory: 1GiB
~~~

## Where a setting comes from

A later source wins.

| source | example | note |
| --- | --- | --- |
| default | | |
| configuration file | ~pool_size: 4~ | YAML. ~--config~ or ~ATOLL_CONFIG~ names it; without them, Atoll reads ~` + DefaultFile + `~ if it exists and is readable. |
| environment | ~ATOLL_POOL_SIZE=4~ | An empty variable counts as unset. |
| flag | ~--pool-size 4~ | Of ~atoll serve~, ~atoll run~ and the other commands that use the setting. |
| stored | ~atoll config set model_allow …~ | Only ~cors_origins~, ~mcp_allow~, ~model_allow~, ~sandbox_ca_bundle~, ~webhook_allow~ and ~webhook_ca~. A stored value applies to all running servers until ~atoll config unset~ removes it. |

~~~yaml
listen: 127.0.0.1:8080
pool_size: 4
memory: 1GiB
env_vars:
  LANG: C.UTF-8
~~~

An unknown name in the file is an error. Sizes take units (~512MiB~, ~10MB~, or plain bytes). Durations take units
(~90s~, ~1h~, or plain seconds).
`

const pageClients = `
## Clients

Commands that talk to a server read these variables. The server ignores them.

| variable | meaning |
| --- | --- |
| ~ATOLL_BASE_URL~ | The server, such as ~http://127.0.0.1:8080~. Without it, commands use the server of this machine's data folder. If there is none, they use the last server that you started and that still runs; ~$XDG_STATE_HOME/atoll/last-server.json~ records it. ~atoll run~ needs no server. |
| ~ATOLL_API_KEY~ | The key: a tenant's, the development key or the admin key. ~--key-file~ wins over it. Without either, commands use the keys in this machine's data folder: the admin key for administrative commands, the development key for all others. |
`

// Markdown returns docs/reference/settings.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(page(pageHead))
	group := ""
	for _, s := range Settings() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n\n| setting | default | meaning |\n| --- | --- | --- |\n", group)
		}
		help := s.Help
		if s.Enum != nil {
			help += " One of `" + strings.Join(s.Enum, "`, `") + "`."
		}
		if s.Secret {
			help += " Never printed."
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Name, cell(s.Shown), cell(help))
	}
	b.WriteString(page(pageClients))
	b.WriteString("\n<!-- Written by make generate from internal/app/config. -->\n")
	return b.String()
}

// page is text in which ~ stands for the quote that a Go literal cannot hold.
func page(text string) string { return strings.ReplaceAll(text, "~", "`") }

// cell escapes characters that have a meaning in a table's cell.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace(text)
}
