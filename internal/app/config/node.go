package config

import "net"

// checkNode checks the settings of connections between servers, and fills in their defaults.
func (c *Config) checkNode(check func(ok bool, format string, args ...any)) {
	if c.NodeListen == "" && c.Role == RoleGateway {
		check(c.NodeAddress == "", "node_address: a gateway runs no sandboxes, so unset it")
		return
	}
	if c.NodeListen == "" {
		check(c.NodeAddress == "" && c.NodeCert == "" && c.NodeKey == "" && c.NodeCA == "", "node_listen: set it too, or none of node_address, node_cert, node_key and node_ca")
		return
	}
	if c.NodeAddress == "" {
		c.NodeAddress = c.NodeListen
	}
	_, _, err := net.SplitHostPort(c.NodeListen)
	check(err == nil, "node_listen: %q is not an address and port such as 10.0.0.1:8443", c.NodeListen)
	host, port, err := net.SplitHostPort(c.NodeAddress)
	ip := net.ParseIP(host)
	check(err == nil && host != "" && port != "0" && !ip.IsUnspecified(), "node_address: want the host and port that other servers connect to, such as 10.0.0.1:8443, not %q", c.NodeAddress)
	check(!c.Alone(), "node_listen: set nats too; without it there are no other servers")
	check(c.NodeCert != "" && c.NodeKey != "" && c.NodeCA != "", "node_listen: set node_cert, node_key and node_ca too; 'atoll node cert' writes them")
}
