package redteam

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// egressCases have programs reach what no policy of a tenant lets them reach. The
// server's own record says why something was refused: an address at which nothing
// answers is no proof.
func egressCases() []Case {
	return []Case{
		{"egress/private", Critical, "connects to private, carriers' and link-local addresses with a policy that allows all", "each is refused for the floor", floorConnects("10.0.0.1:80", "10.255.255.1:443", "172.16.0.1:22", "192.168.0.1:80", "192.168.1.1:8080", "100.64.0.1:80", "169.254.1.1:80", "240.0.0.1:80", "0.1.2.3:80")},
		{"egress/metadata", Critical, "connects to the addresses at which clouds hand out credentials", "each is refused for the floor", floorConnects("169.254.169.254:80", "169.254.169.254:443", "169.254.170.2:80", "100.100.100.200:80")},
		{"egress/own-addresses", Critical, "connects to the addresses of the server's machine, at the server's port and others", "each is refused for the floor", ownConnects},
		{"egress/gateway", Critical, "connects to every service port of its gateway, and to the server's", "nothing but the resolver answers", gatewayConnects},
		{"egress/blocked-ports", High, "connects to a port that its policy blocks", "it is refused for that", refusedFor("blocked_ports", "192.0.2.1:8443")},
		{"egress/names", Critical, "looks up and connects to names of metadata services, of clusters and of the host", "none leads to the floor", namesConnects},
		{"egress/rules-address", Critical, "connects to an address that no name led to, where only a name is allowed", "it is refused for that", rulesAddress},
		{"egress/rules-lookups", Critical, "says something in lookups of names that are not allowed, of every type, and at other resolvers", "no lookup leaves, and none is answered", rulesLookups},
		{"egress/none", Critical, "connects, sends datagrams and looks up names without a network", "nothing is sent", noNetwork},
	}
}

// connecting tries addresses, a few at a time, and says which answered.
const connecting = prelude + `
import threading
def go(target):
    host, port = target.rsplit(':', 1)
    s = socket.socket(); s.settimeout(8)
    try: s.connect((host, int(port)))
    except OSError: return
    got('connected to', target)
def all_of(targets):
    ts = [threading.Thread(target=go, args=(t,)) for t in targets]
    for t in ts: t.start()
    for t in ts: t.join()
    print('tried')
`

// refusals runs a program in a network and returns what its record says was refused.
func (a *arena) refusals(ctx context.Context, by caller, code string, attempts int) (hosts []string, err error) {
	e, err := a.execute(ctx, by, "python", code, 30, nil)
	if err != nil {
		return nil, err
	}
	if e.Status != http.StatusOK {
		return nil, fmt.Errorf("a program with a network: %s", e)
	}
	if err := judge(output{Stdout: e.Stdout, Stderr: e.Stderr, Exit: e.Exit}, attempts); err != nil {
		return nil, err
	}
	rows, err := listed[struct {
		Hosts []string `json:"outbound_hosts"`
	}](ctx, a.admin, "/v1/admin/tenants/"+attackerTenant+"/audit?trace_id="+e.Trace)
	for _, r := range rows {
		hosts = append(hosts, r.Hosts...)
	}
	return hosts, err
}

// refusedFor connects to addresses, and wants each to be refused for a rule.
func refusedFor(rule string, targets ...string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error { return a.refused(ctx, a.net, rule, targets) }
}

func floorConnects(targets ...string) func(context.Context, *arena) error {
	return refusedFor("floor", targets...)
}

func (a *arena) refused(ctx context.Context, by caller, rule string, targets []string) error {
	list, err := json.Marshal(targets)
	if err != nil {
		return err
	}
	hosts, err := a.refusals(ctx, by, connecting+"all_of("+string(list)+")", 1)
	if err != nil {
		return err
	}
	for _, target := range targets {
		if !slices.Contains(hosts, fmt.Sprintf("refused %s (%s)", target, rule)) {
			return found("%s is not recorded as refused for %s: %q", target, rule, hosts)
		}
	}
	return nil
}

func ownConnects(ctx context.Context, a *arena) error {
	hosts, err := a.ownAddresses(ctx)
	if err != nil {
		return err
	}
	var targets []string
	for _, h := range hosts {
		if !strings.HasPrefix(h, "[") && !strings.HasPrefix(h, "127.") { // a sandbox has no IPv6, and its loopback is its own
			targets = append(targets, h+":"+portOf(a), h+":22")
		}
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	if len(targets) == 0 {
		return skip("the server's machine has no address that a client can know but its loopback interface's")
	}
	return a.refused(ctx, a.net, "floor", targets[:min(len(targets), 60)])
}

func gatewayConnects(ctx context.Context, a *arena) error {
	code := connecting + `
gateways = {socket.inet_ntoa(struct.pack('<I', int(l.split()[2], 16))) for l in open('/proc/net/route').readlines()[1:]} - {'0.0.0.0'}
resolvers = {l.split()[1] for l in open('/etc/resolv.conf') if l.startswith('nameserver')}
if not gateways | resolvers: raise SystemExit('no gateway')
all_of(['%s:%d' % (g, p) for g in gateways | resolvers for p in (22, 25, 80, 111, 443, 2049, 2375, 4222, 5432, 6379, 6443, 8080, 9090, 10250, ` + portOf(a) + `)])
`
	_, err := a.refusals(ctx, a.net, code, 1)
	return err
}

// portOf is the server's port.
func portOf(a *arena) string {
	if p := a.base.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[a.base.Scheme]
}

func namesConnects(ctx context.Context, a *arena) error {
	const code = connecting + `
import ipaddress
names = ['metadata.google.internal', 'metadata', 'instance-data', 'instance-data.ec2.internal', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local', 'host.docker.internal', 'host.containers.internal', 'gateway.docker.internal', 'localhost.localdomain', 'wpad']
def look(name):
    for *_, (at, _) in socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM):
        if not ipaddress.ip_address(at).is_global and not at.startswith('127.'): got(name, 'is', at)
        if not at.startswith('127.'): go(at + ':80')
ts = [threading.Thread(target=attempt, args=(look, n)) for n in names]
for t in ts: t.start()
for t in ts: t.join()
`
	_, err := a.refusals(ctx, a.net, code, 11)
	return err
}

// theRules makes an environment that allows one name, which does not exist.
func (a *arena) theRules(ctx context.Context) (caller, error) {
	return a.rules.get(ctx, func(ctx context.Context) (caller, error) {
		network := map[string]any{"enabled": true, "allowed_hosts": []string{"redteam.invalid"}}
		return a.room(ctx, attackerTenant, envRules, map[string]any{"permissions": map[string]any{"network": network}})
	})
}

func rulesAddress(ctx context.Context, a *arena) error {
	c, err := a.theRules(ctx)
	if err != nil {
		return err
	}
	return a.refused(ctx, c, "address", []string{"192.0.2.1:443", "198.51.100.1:80", "203.0.113.1:25"})
}

func rulesLookups(ctx context.Context, a *arena) error {
	c, err := a.theRules(ctx)
	if err != nil {
		return err
	}
	name := "said-" + token(8) + ".example.com"
	code := prelude + `
name = '` + name + `'
servers = [l.split()[1] for l in open('/etc/resolv.conf') if l.startswith('nameserver')]
def ask(server, kind, tcp=False):
    q = struct.pack('>HHHHHH', 7, 256, 1, 0, 0, 0) + b''.join(bytes([len(p)]) + p.encode() for p in name.split('.')) + b'\0' + struct.pack('>HH', kind, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM); s.settimeout(2); s.connect((server, 53))
    s.send(struct.pack('>H', len(q)) + q if tcp else q)
    r = s.recv(4096)[2 if tcp else 0:]
    if server not in servers: got('an answer of', server)
    if r[3] & 15 == 0 and struct.unpack('>H', r[6:8])[0] > 0: got('an answer to', name, 'of the type', kind)
for kind in 1, 28, 16, 10, 5, 15, 33, 65, 255: attempt(ask, servers[0], kind)
attempt(ask, servers[0], 16, True)
for server in '192.0.2.53', '198.51.100.53': attempt(ask, server, 16)
`
	hosts, err := a.refusals(ctx, c, code, 12)
	if err != nil {
		return err
	}
	if !slices.Contains(hosts, "refused "+name+" (allowed_hosts)") {
		return found("the lookup of %s is not recorded as refused: %q", name, hosts)
	}
	return nil
}

func noNetwork(ctx context.Context, a *arena) error {
	return program(6, `
def tcp(at): socket.create_connection(at, 3).close(); got('connected to', at)
def udp(at):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'redteam', at); got('sent a datagram to', at)
def name(n): got(n, 'is', socket.getaddrinfo(n, 80))
attempt(tcp, ('192.0.2.1', 80)); attempt(tcp, ('169.254.169.254', 80)); attempt(tcp, ('10.0.0.1', 22))
attempt(udp, ('192.0.2.1', 53)); attempt(udp, ('169.254.169.254', 53))
attempt(name, 'example.com')
`)(ctx, a)
}
