package config

import "regexp"

// installationPattern matches ids of installations.
var installationPattern = regexp.MustCompile(`^ins_[0-9a-zA-Z]{1,64}$`)

// Values of the setting role.
const (
	RoleAll      = "all"
	RoleGateway  = "gateway"
	RoleExecutor = "executor"
)

// Gateway reports whether this server answers clients and keeps records. Executor reports whether it
// runs sandboxes. A server of the role all does both.
func (c *Config) Gateway() bool  { return c.Role != RoleExecutor }
func (c *Config) Executor() bool { return c.Role != RoleGateway }

// checkRole checks the settings that a role needs and those that it must not have.
func (c *Config) checkRole(check func(ok bool, format string, args ...any)) {
	check(c.Installation == "" || c.Role == RoleExecutor, "installation: only an executor takes it; unset it")
	check(c.Installation == "" || installationPattern.MatchString(c.Installation), "installation: %q is not the id of an installation", c.Installation)
	if c.Role == RoleAll {
		return
	}
	check(c.NATS != "", "role: a server with the role %s needs nats, which connects gateways and executors", c.Role)
	check(c.Blobs != "", "role: a server with the role %s needs blobs, a bucket that gateways and executors share", c.Role)
	check(c.NodeCert != "" && c.NodeKey != "" && c.NodeCA != "", "role: a server with the role %s needs node_cert, node_key and node_ca; 'atoll node cert' writes them", c.Role)
	if c.Role == RoleGateway {
		check(c.Database != "", "role: a gateway needs database, the postgres:// URL that gateways share")
		check(c.SecretKey != "", "role: a gateway needs secret_key, which gateways share; 'openssl rand -hex 32' prints one")
		check(c.NodeListen == "", "role: a gateway runs no sandboxes, so unset node_listen")
		return
	}
	check(c.NodeListen != "", "role: an executor needs node_listen, where gateways reach its sandboxes")
	check(c.Database == "" && c.SecretKey == "", "role: an executor reads no records, so unset database and secret_key and keep them off its machine")
	check(c.DevKey == "" && c.Dev == "off", "role: an executor answers no clients, so unset dev_key and dev; set them on a gateway")
}
