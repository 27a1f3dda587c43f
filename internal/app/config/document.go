package config

import (
	"fmt"
	"strings"
)

//go:generate go run ./gendocs ../../../docs/configuration.md

// Markdown returns docs/configuration.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`<!-- Written by make generate from internal/app/config; edits here are lost. -->
# Configuration

A setting comes from its default, then the configuration file, then the environment, then a flag; the later one wins.
` + "`pool_size`" + ` in the file is ` + "`ATOLL_POOL_SIZE`" + ` in the environment and ` + "`--pool-size`" + ` as a flag of ` + "`atoll serve`" + `,
` + "`atoll run`" + ` and the other commands that use it. The file is YAML, named by ` + "`--config`" + ` or ` + "`ATOLL_CONFIG`" + `,
otherwise ` + "`" + DefaultFile + "`" + ` if it is there and can be read:

` + "```yaml" + `
listen: 127.0.0.1:8080
pool_size: 4
memory: 1GiB
env_vars:
  LANG: C.UTF-8
` + "```" + `

A name the file has and Atoll does not know is an error. Sizes take units (` + "`512MiB`, `10MB`" + `, or plain bytes), durations too
(` + "`90s`, `1h`" + `, or plain seconds). ` + "`atoll config`" + ` prints every setting with the value it has. An empty environment
variable counts as not set.
`)
	group := ""
	for _, s := range Settings() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n\n| setting | environment | default | what it does |\n| --- | --- | --- | --- |\n", group)
		}
		help := s.Help
		if s.Enum != nil {
			help += " One of `" + strings.Join(s.Enum, "`, `") + "`."
		}
		if s.Secret {
			help += " Never printed."
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", s.Name, s.Env, s.Shown, help)
	}
	b.WriteString(`
## Clients

These are read by ` + "`atoll run`" + ` and by every SDK, not by the server.

| environment | what it does |
| --- | --- |
| ` + "`ATOLL_BASE_URL`" + ` | Server to use, such as ` + "`http://127.0.0.1:8080`" + `. ` + "`atoll run`" + ` without it needs no server. |
| ` + "`ATOLL_API_KEY`" + ` | Key to send to it. |
`)
	return b.String()
}
