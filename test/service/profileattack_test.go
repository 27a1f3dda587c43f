package service

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// attackKey is the key that the attackers' model has for its provider.
const attackKey = "key-of-the-provider-0123456789"

// toolAttacks are what the attackers do with their other tools. $PAGES is where pages are that
// may be read, $MACHINE and $PORT where the server is.
var toolAttacks = []struct{ name, tool, arguments string }{
	{"read_file shadow", "read_file", `{"file_path": "/etc/shadow"}`},
	{"read_file above", "read_file", `{"file_path": "../../etc/shadow"}`},
	{"read_file process 1", "read_file", `{"file_path": "/proc/1/environ"}`},
	{"read_file host", "read_file", `{"file_path": "$DATA/admin-key"}`},
	{"write_file home", "write_file", `{"file_path": "written", "content": "x"}`},
	{"write_file tmp", "write_file", `{"file_path": "/tmp/written", "content": "x"}`},
	{"write_file opt", "write_file", `{"file_path": "/opt/written", "content": "x"}`},
	{"write_file guest", "write_file", `{"file_path": "/.atoll/written", "content": "x"}`},
	{"write_file var", "write_file", `{"file_path": "/var/tmp/written", "content": "x"}`},
	{"edit_file", "edit_file", `{"file_path": "/etc/passwd", "old_string": "root:x:0:0", "new_string": "root::0:0"}`},
	{"apply_patch var", "apply_patch", `{"patch": "*** Begin Patch\n*** Add File: /var/tmp/patched\n+x\n*** End Patch"}`},
	{"apply_patch above", "apply_patch", `{"patch": "*** Begin Patch\n*** Add File: ../../var/tmp/patched2\n+x\n*** End Patch"}`},
	{"glob root", "glob", `{"pattern": "*", "path": "/root"}`},
	{"grep shadow", "grep", `{"pattern": "root:", "path": "/etc/shadow"}`},
	{"grep host", "grep", `{"pattern": "sk-", "path": "$DATA"}`},
	{"share_file shadow", "share_file", `{"file_path": "/etc/shadow"}`},
	{"share_file memory", "share_file", `{"file_path": "/proc/1/mem"}`},
	{"fetch_url allowed", "fetch_url", `{"urls": ["$PAGES/page"]}`},
	{"fetch_url metadata", "fetch_url", `{"urls": ["http://169.254.169.254/latest/meta-data/"]}`},
	{"fetch_url redirected", "fetch_url", `{"urls": ["$PAGES/to-the-server"]}`},
	{"fetch_url server", "fetch_url", `{"urls": ["http://127.0.0.1:$PORT/v1/models"]}`},
	{"fetch_url machine", "fetch_url", `{"urls": ["http://$MACHINE:$PORT/v1/models"]}`},
	{"fetch_url number", "fetch_url", `{"urls": ["http://2130706433:$PORT/v1/models"]}`},
	{"fetch_url IPv6", "fetch_url", `{"urls": ["http://[::ffff:127.0.0.1]:$PORT/v1/models"]}`},
	{"fetch_url file", "fetch_url", `{"urls": ["file:///etc/passwd"]}`},
	{"web_search", "web_search", `{"queries": ["atolls"]}`},
	{"tool of others", "sandbox_list", `{"session": "$SESSION"}`},
	{"MCP tool", "shop__order", `{}`},
	{"MCP tool that is denied", "shop__refund", `{}`},
	{"dd", "run_code", `{"language": "bash", "code": "d=d; $d$d if=/dev/zero of=/dev/null count=1 && echo yes"}`},
	{"su", "run_code", `{"language": "bash", "code": "su -c true root </dev/null && echo yes"}`},
	{"fork bomb", "run_code", `{"language": "bash", "code": "b() { b | b & }; b; sleep 60", "timeout": 2}`},
}

// held is how each attack ends: in the profiles unrestricted, standard, restricted and
// isolated, or in all of them. Of tools it is a part of what the model is told; * is anything.
const held = `
write /home/user | yes | yes | yes | EROFS
write /tmp | yes
write /var/tmp | yes | EROFS | EROFS | EROFS
write /opt | EACCES
write /etc | EACCES
write /usr/bin | EACCES
write /root | EACCES
write /data | ENOENT | ENOENT | EACCES | ENOENT
write /.atoll | EROFS
write /dev/shm | yes | yes | yes | EROFS
read shadow | EACCES
read shadow by a link | EACCES
read shadow by a hard link | EXDEV
read shadow by process 1 | EACCES
read shadow by itself | EACCES
list root | EACCES
host's data | ENOENT
make all writable | EPERM
uncover | EPERM
another root | EPERM
write as root of a namespace | EACCES | EACCES | EACCES | EPERM
start | yes | yes | yes | EPERM
forks | 40 | 19 | 9 | 0
become root | EPERM
become the group of root | EPERM
files that raise rights | none
end process 1 | EPERM
end others | none
read process 1 | EACCES
environment of process 1 | EACCES
descriptors of process 1 | EACCES
trace process 1 | EPERM
load a module | EPERM
restart | EPERM
a device | EPERM
raw socket | EPERM
packets | EPERM
metadata address | ECONNREFUSED | ECONNREFUSED | ECONNREFUSED | ENETUNREACH
metadata name | no such name
private address | ECONNREFUSED | ECONNREFUSED | ECONNREFUSED | ENETUNREACH
public address | * | ECONNREFUSED | ECONNREFUSED | ENETUNREACH
server at its machine | ECONNREFUSED | ECONNREFUSED | ECONNREFUSED | ENETUNREACH
server at the gateway | ECONNREFUSED | ECONNREFUSED | ECONNREFUSED | ENETUNREACH
server at its own loopback | ECONNREFUSED
other sandbox at the gateway | ECONNREFUSED | ECONNREFUSED | ECONNREFUSED | ENETUNREACH
other sandbox at its own loopback | ECONNREFUSED
by IPv6 | ECONNREFUSED | ECONNREFUSED | ECONNREFUSED | ENETUNREACH
name of the machine | no such name
name that says something | * | * | no such name | no such name
another resolver | * | ECONNREFUSED | ECONNREFUSED | ENETUNREACH
host of the machine | EAFNOSUPPORT
sockets of others | none
API of the server | 404
search of the web | 200 | 200 | 403 | 403
page that is allowed | yes | the network | the network | the network
page of the metadata address | the URL | the network | the network | the network
page of the server | the URL | the network | the network | the network
secrets | none

read_file shadow | user may not
read_file above | user may not
read_file process 1 | user may not
read_file host | no such file
write_file home | Created | Created | Created | read-only
write_file tmp | Created
write_file var | Created | read-only | read-only | read-only
write_file opt | user may not
write_file guest | read-only
edit_file | user may not
apply_patch var | Done | read-only | read-only | read-only
apply_patch above | Done | read-only | read-only | read-only
glob root | Nothing matches
grep shadow | No line matches
grep host | no such file
share_file shadow | user may not
share_file memory | user may not
fetch_url allowed | Rings of coral | does not allow | does not allow | does not allow
fetch_url metadata | must not lead | does not allow | does not allow | does not allow
fetch_url redirected | its address is refused | does not allow | does not allow | does not allow
fetch_url server | must not lead | does not allow | does not allow | does not allow
fetch_url machine | must not lead | does not allow | does not allow | does not allow
fetch_url number | must be a host name | must be a host name | does not allow | does not allow
fetch_url IPv6 | must not lead | does not allow | does not allow | does not allow
fetch_url file | must begin with http
web_search | About atolls | About atolls | does not allow every host | does not allow every host
MCP tool | order is on its way
MCP tool that is denied | there is no tool
tool of others | there is no tool
dd | yes | yes | "dd" | fork: Operation not permitted
su | Authentication failure | Authentication failure | "su" | fork: Operation not permitted
fork bomb | ended after 2s | ended after 2s | ended after 2s | fork: Operation not permitted
`

// refused is what the audit trail says that the network has refused in each profile, and why.
var refused = map[tenant.Profile]string{
	tenant.Unrestricted: onTheFloor,
	tenant.StandardUse:  onTheFloor + ",198.51.100.53:53 (address),198.51.100.7:22 (address)",
	tenant.Restricted: onTheFloor + ",198.51.100.53:53 (address),198.51.100.7:22 (blocked_ports),localhost.localdomain (allowed_hosts)," +
		"metadata.google.internal (allowed_hosts),said.example.com (allowed_hosts)",
}

const onTheFloor = "10.0.0.1:80 (floor),169.254.169.254:80 (floor),$MACHINE:$PORT (floor),198.19.255.253:$PORT (floor),198.19.255.253:9009 (floor)"

// holds is what held says of an attack in a profile.
func holds(name string, profile tenant.Profile) string {
	for line := range strings.Lines(held) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if i := slices.Index(tenant.Profiles, profile); cells[0] == name {
			return cells[min(i+1, len(cells)-1)]
		}
	}
	return ""
}

// TestProfilesAttacked has agents try to break out of each profile of permissions with every
// tool there is, side by side, while a session beside theirs goes on.
func TestProfilesAttacked(t *testing.T) {
	pages, shop := newPages(t), newShop(t)
	s := atolltest.Start(t, atolltest.Options{Env: append(append([]string{noPool, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_MCP_ALLOW=127.0.0.1"}, searchSettings...), "ATOLL_FETCH_ALLOW=127.0.0.2")})
	pages.server = s.URL
	p := httptest.NewServer(&scriptedmodel.Provider{Next: attacker})
	t.Cleanup(p.Close)
	s.Must(t, s.AdminKey(t), http.MethodPost, "/v1/admin/models", map[string]any{"name": "attacker", "provider": "openai", "base_url": p.URL + "/v1", "key": attackKey}).Into(t, http.StatusCreated, nil)
	k, foreign := tenantOfAttackers(t, s, "attacked", shop), tenantOfAttackers(t, s, "foreign", shop).enter(t, "main")
	environments := map[tenant.Profile]string{}
	for _, profile := range tenant.Profiles {
		var made struct{ ID string }
		config := map[string]any{"permission_profile": profile, "permissions": map[string]any{"allow_mcp_servers": true}}
		s.Must(t, k.key, http.MethodPost, "/v1/environments", map[string]any{"name": profile, "config": config}).Into(t, http.StatusCreated, &made)
		environments[profile] = made.ID
	}
	peer := k.enter(t, environments[tenant.Unrestricted])
	peer.calls([][2]string{{"run_code", code("python", peerProgram)}})
	file, err := os.ReadFile(filepath.Join("testdata", "attack.py"))
	if err != nil {
		t.Fatal(err)
	}
	put := strings.NewReplacer("$DATA", s.Data, "$MACHINE", machine(t), "$PORT", s.URL[strings.LastIndexByte(s.URL, ':')+1:], "$PAGES", pages.url,
		"$SESSION", filepath.Base(peer.path), "$FOREIGN", filepath.Base(foreign.path))
	program := put.Replace(string(file))
	calls := make([][2]string, len(toolAttacks))
	for i, try := range toolAttacks {
		calls[i] = [2]string{try.tool, put.Replace(try.arguments)}
	}
	t.Run("by", func(t *testing.T) {
		for _, profile := range tenant.Profiles {
			t.Run(string(profile), func(t *testing.T) {
				t.Parallel()
				a := k.enter(t, environments[profile])
				check := func(name, said string, ok func(string, string) bool) {
					if want := holds(name, profile); want == "" || want != "*" && !ok(said, want) {
						t.Errorf("%s: %.300q, want %q", name, said, want)
					}
				}
				if _, tools, _ := strings.Cut(strings.TrimSpace(held), "\n\n"); strings.Count(tools, "\n")+1 != len(calls) {
					t.Errorf("there are %d attacks with tools, and held has others", len(calls))
				}
				for i, said := range a.calls(calls) {
					check(toolAttacks[i].name, said, strings.Contains)
				}
				a.programAttacks(program, check)
				if out := a.calls([][2]string{{"run_code", code("python", "print(6 * 7)")}})[0]; !strings.Contains(out, "42") {
					t.Errorf("after the attacks: %s", out)
				}
				want := strings.FieldsFunc(put.Replace(refused[profile]), func(r rune) bool { return r == ',' })
				if got := refusals(t, s, environments[profile]); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
					t.Errorf("the audit trail has\n%q, want\n%q", got, want)
				}
			})
		}
	})
	if out := peer.calls([][2]string{{"run_code", code("python", peerStill)}})[0]; !strings.Contains(out, "words-of-another-session") || !strings.Contains(out, "answered") {
		t.Errorf("the session beside them: %s", out)
	}
	if n := shop.refunds.Load(); n != 0 {
		t.Errorf("there were %d refunds", n)
	}
}

// programAttacks runs the attacks of a program, and checks each: there must be as many as held
// has of programs.
func (k *talker) programAttacks(program string, check func(string, string, func(string, string) bool)) {
	k.Helper()
	out := k.calls([][2]string{{"run_code", code("python", program)}})[0]
	_, out, _ = strings.Cut(out, "stdout:\n")
	names := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(out)) {
		name, said, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name != "token" {
			names[name] = true
			check(name, said, func(said, want string) bool { return said == want })
			continue
		}
		for _, path := range []string{"/v1/models", k.path, "/v1/admin/tenants"} {
			if a := k.line.now().Must(k, said, http.MethodGet, path, nil); a.Status != http.StatusUnauthorized {
				k.Errorf("%s with the token of a program: %d %s", path, a.Status, a.Body)
			}
		}
	}
	programs, _, _ := strings.Cut(strings.TrimSpace(held), "\n\n")
	if want := strings.Count(programs, "\n") + 1; len(names) != want {
		k.Errorf("the program made %d attacks of %d: %s", len(names), want, out)
	}
}

// refusals are what the audit trail says that an environment's network refused.
func refusals(t *testing.T, s *atolltest.Server, environment string) (all []string) {
	var trail struct {
		Data []struct {
			Environment string   `json:"environment_id"`
			Hosts       []string `json:"outbound_hosts"`
		}
	}
	s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/attacked/audit?limit=1000", nil).Into(t, http.StatusOK, &trail)
	for _, row := range trail.Data {
		for _, host := range row.Hosts {
			if host, ok := strings.CutPrefix(host, "refused "); ok && row.Environment == environment {
				all = append(all, host)
			}
		}
	}
	slices.Sort(all)
	return all
}

// peerProgram leaves words and a server to its sandbox, and peerStill finds them there.
const (
	peerProgram = `import subprocess
open("/home/user/words", "w").write("words-of-another-session")
listen = "import socket; s = socket.create_server(('', 9009)); print('listens', flush=True)\nwhile True: s.accept()"
print(subprocess.Popen(["python3", "-c", listen], start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.readline())`
	peerStill = `import socket
print(open("/home/user/words").read())
socket.create_connection(("127.0.0.1", 9009), 5)
print("answered")`
)

func code(language, program string) string {
	return text(map[string]any{"language": language, "code": program})
}

// attacker is a model that makes the calls of a message.
func attacker(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
	said, results := conversation(r.Body)
	if results != "" {
		return scriptedmodel.Say("done"), true
	}
	var calls [][2]string
	if err := json.Unmarshal([]byte(said), &calls); err != nil {
		return scriptedmodel.Turn{}, false
	}
	var turn scriptedmodel.Turn
	for i, c := range calls {
		turn.Blocks = append(turn.Blocks, scriptedmodel.Ask(fmt.Sprint("call_", i), c[0], c[1]).Blocks...)
	}
	return turn, true
}

// tenantOfAttackers makes a tenant that may have a network, with the agent.
func tenantOfAttackers(t *testing.T, s *atolltest.Server, name string, shop *shop) *talker {
	s.Tenant(t, name, "enterprise")
	admin, base := s.AdminKey(t), "/v1/admin/tenants/"+name
	s.Must(t, admin, http.MethodPatch, base, map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	var made struct{ Key string }
	s.Must(t, admin, http.MethodPost, base+"/keys", map[string]any{"name": "wide", "environment": "main", "scopes": []string{"execute", "read", "tools", "environments"}}).Into(t, http.StatusCreated, &made)
	s.Must(t, made.Key, http.MethodPost, "/v1/agents", map[string]any{
		"name": "Attacker", "slug": "attacker", "model": map[string]string{"name": "attacker"},
		"tools":       []any{map[string]string{"type": "sandbox"}, map[string]string{"type": "fetch_url"}, map[string]string{"type": "web_search"}, map[string]string{"type": "mcp", "server": "shop"}},
		"mcp_servers": []any{map[string]any{"name": "shop", "url": shop.URL, "headers": shopKey, "allowed_tools": []string{"order"}}},
	}).Into(t, http.StatusCreated, nil)
	return &talker{t, &succession{TB: t, server: s}, made.Key, ""}
}

// enter begins a session of the attacker in an environment.
func (k *talker) enter(t *testing.T, environment string) *talker {
	t.Helper()
	var made struct{ ID string }
	k.line.now().Must(t, k.key, http.MethodPost, "/v1/sessions", map[string]any{"agent_id": "attacker", "environment_id": environment}).Into(t, http.StatusCreated, &made)
	return &talker{t, k.line, k.key, "/v1/sessions/" + made.ID}
}

// calls has the agent make calls, and returns what it was told of each.
func (k *talker) calls(calls [][2]string) (out []string) {
	k.Helper()
	after := k.newest()
	k.send(message(text(calls)), "completed", "done")
	ids := map[string]int{}
	out = make([]string, len(calls))
	for _, e := range k.after(after) {
		switch i, ok := ids[e.ToolUse]; {
		case e.Type == "tool_use":
			ids[e.ID] = len(ids)
		case ok:
			out[i] = e.Content
		}
	}
	return out
}

// after are the events after one of them.
func (k *talker) after(last string) []sessionEvent {
	k.Helper()
	all := k.events("")
	return all[slices.IndexFunc(all, func(e sessionEvent) bool { return e.ID == last })+1:]
}

// machine is an address of this machine that is not its loopback's.
func machine(t *testing.T) string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no address but its loopback's")
	return ""
}

// webPages are pages at an address that the operator has opened.
type webPages struct{ url, server string }

func newPages(t *testing.T) *webPages {
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &webPages{url: "http://" + listener.Addr().String()}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/to-the-server" {
			http.Redirect(w, r, p.server+"/v1/models", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "<title>Atolls</title><p>Rings of coral.")
	}))
	if err := s.Listener.Close(); err != nil {
		t.Error(err)
	}
	s.Listener = listener
	s.Start()
	t.Cleanup(s.Close)
	return p
}
