package doctor

import (
	"context"
	"net"
	"net/url"
	"strings"
	"time"
)

// dialTimeout bounds a connection to one server.
const dialTimeout = 5 * time.Second

// defaultPorts are the ports of URLs without one, by scheme.
var defaultPorts = map[string]string{"postgres": "5432", "postgresql": "5432", "nats": "4222", "tls": "4222", "ws": "80", "wss": "443"}

// reachable checks that one of a server's URLs accepts connections.
func reachable(ctx context.Context, s Server) Finding {
	var failures []string
	for text := range strings.SplitSeq(s.URLs, ",") {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") { // NATS takes a host and port
			text = s.Setting + "://" + text
		}
		u, err := url.Parse(text)
		if err != nil {
			failures = append(failures, "the URL is malformed") // err contains the password
			continue
		}
		port := u.Port()
		if port == "" {
			port = defaultPorts[u.Scheme]
		}
		address := net.JoinHostPort(u.Hostname(), port)
		conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
		if err == nil {
			conn.Close()
			return ok(s.Setting, "%s accepts connections", address)
		}
		failures = append(failures, err.Error())
	}
	return failed(s.Setting, "cannot be reached: "+strings.Join(failures, "; "), "start it, or correct the setting "+s.Setting)
}
