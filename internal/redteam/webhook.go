package redteam

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// webhookCases have the server call addresses that no caller should make it call.
func webhookCases() []Case {
	held := "the execution is refused before anything runs"
	return []Case{
		{"webhooks/floor", Critical, "asks for results at loopback, private and metadata addresses, written in each way", held, hookAddresses(floorHosts...)},
		{"webhooks/own-address", Critical, "asks for results at the addresses of the server's own machine", held, ownAddress},
		{"webhooks/forms", High, "asks for results at URLs without TLS, with a user, a fragment, another scheme, and above the length", held, hookURLs(
			"http://192.0.2.1/", "https://user:password@192.0.2.1/", "https://192.0.2.1/#x", "file:///etc/passwd", "gopher://192.0.2.1/", "//192.0.2.1/", "https:///", "https://192.0.2.1:99999/",
			"https://192.0.2.1/"+strings.Repeat("a", 2100), "https://192.0.2.1\\@127.0.0.1/", "https://127.0.0.1%2f@192.0.2.1/", "https://ä.example/\u202e")},
		{"webhooks/keys", Critical, "gives a key a URL at such addresses", "the key is not made", hookKeys},
	}
}

// floorHosts are addresses that no rule of a tenant may reach, in the ways that
// resolvers and clients read.
var floorHosts = []string{
	"127.0.0.1", "127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "localhost", "localhost.", "LOCALHOST", "0.0.0.0", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]",
	"[2002:7f00:1::]", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[fd00:ec2::254]", "[fe80::1]", "[fc00::1]", "100.100.100.200",
	"224.0.0.1", "255.255.255.255", "240.0.0.1", "127.0.0.1.", "127.0.0.1:443",
}

func hookAddresses(hosts ...string) func(context.Context, *arena) error {
	urls := make([]string, len(hosts))
	for i, h := range hosts {
		urls[i] = "https://" + h + "/redteam"
	}
	return hookURLs(urls...)
}

func hookURLs(urls ...string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		for _, u := range urls {
			got, err := a.plain.do(ctx, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "pass", "webhook_url": u}, "Prefer", "respond-async")
			if err != nil {
				return err
			}
			if got.Status < 400 || got.Status >= 500 {
				return found("webhook_url %.200s: %s", u, got)
			}
		}
		return nil
	}
}

// ownAddresses are those of the server's machine that a client can know: those of its
// name, and where the client is on the same machine, those of its interfaces.
func (a *arena) ownAddresses(ctx context.Context) ([]string, error) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", a.base.Hostname())
	if err != nil {
		return nil, err
	}
	here := false
	var out []string
	add := func(at netip.Addr) {
		if at = at.Unmap().WithZone(""); at.Is6() {
			out = append(out, "["+at.String()+"]")
		} else {
			out = append(out, at.String())
		}
	}
	for _, at := range found {
		here = here || at.IsLoopback()
		add(at)
	}
	if !here {
		return out, nil
	}
	mine, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, m := range mine {
		if p, err := netip.ParsePrefix(m.String()); err == nil {
			add(p.Addr())
		}
	}
	return out, nil
}

func ownAddress(ctx context.Context, a *arena) error {
	hosts, err := a.ownAddresses(ctx)
	if err != nil {
		return err
	}
	return hookAddresses(append(hosts, a.base.Hostname())...)(ctx, a)
}

func hookKeys(ctx context.Context, a *arena) error {
	for i, h := range floorHosts {
		body := map[string]any{"name": fmt.Sprintf("redteam-%s-hook-%d", a.run, i), "environment": envPlain, "scopes": []string{"execute"}, "webhook_url": "https://" + h + "/", "expires_in": 60}
		got, err := a.admin.do(ctx, http.MethodPost, "/v1/admin/tenants/"+attackerTenant+"/keys", body)
		if err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 {
			return found("webhook_url of a key at %s: %s", h, clipKey(got))
		}
	}
	return nil
}
