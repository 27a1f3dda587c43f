package mcp

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// checkSource refuses what a web page could have a browser send: pages of other
// origins, and pages whose host name was made to lead here (DNS rebinding). A
// page also lacks a key; this holds where one was given to a browser.
func (s *Server) checkSource(r *http.Request) error {
	if err := s.checkHost(r); err != nil {
		return err
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil // no browser
	}
	if len(origins) == 1 && slices.Contains(s.cfg.Origins, origins[0]) {
		return nil
	}
	if u, err := url.Parse(origins[0]); err == nil && len(origins) == 1 && u.Host != "" && strings.EqualFold(u.Host, r.Host) && fixed(r.Host) {
		return nil
	}
	return fault.New(fault.Forbidden, "requests of the web page %.80q are not answered here; mcp_origins lists those that are", strings.Join(origins, ", "))
}

// checkHost refuses host names that are not this machine's on connections within
// it.
func (s *Server) checkHost(r *http.Request) error {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !loopback(local.String()) || loopback(r.Host) || s.cfg.Proxied(r) {
		return nil
	}
	return fault.New(fault.Forbidden, "the Host %.80q is not this machine's; a proxy that passes it on must be one of trusted_proxies", r.Host)
}

// loopback reports whether a host, with a port or without, is this machine.
func loopback(host string) bool {
	name := hostname(host)
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

// fixed reports whether no DNS server decides where a host is.
func fixed(host string) bool {
	_, err := netip.ParseAddr(hostname(host))
	return err == nil || loopback(host)
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}
