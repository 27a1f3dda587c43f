package docs

import _ "embed"

var (
	// enter makes the namespaces a machine of the page's own, and runs it.
	//
	//go:embed machine/enter.sh
	enter string
	// systemctl starts and stops the one unit that the documentation installs, as its
	// file says. It is no systemd: it reads ExecStart, Environment and EnvironmentFile.
	//
	//go:embed machine/systemctl
	systemctl string
	//go:embed machine/journalctl
	journalctl string
)
