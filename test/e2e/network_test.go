package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// clientSays asks a package manager of this machine.
func clientSays(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// pipIndex and npmRegistry are where this machine installs from: nothing else
// is sure to be reached.
func pipIndex(t *testing.T) string {
	if at, err := exec.CommandContext(t.Context(), "pip", "config", "get", "global.index-url").Output(); err == nil {
		return strings.TrimSpace(string(at))
	}
	return clientSays(t, "python3", "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)")
}

func npmRegistry(t *testing.T) string { return clientSays(t, "npm", "config", "get", "registry") }

// pipHosts are those of the index, and of its files.
func pipHosts(t *testing.T) []string {
	files := clientSays(t, "python3", "-c", "from pip._internal.models.index import PyPI; print(PyPI.file_storage_domain)")
	return []string{host(t, pipIndex(t)), files}
}

func host(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		t.Fatalf("%q is no URL: %v", raw, err)
	}
	return u.Hostname()
}

// machineCA is this machine's bundle of certificates, which has those of
// whatever stands between it and the world.
func machineCA(t *testing.T) string {
	t.Helper()
	for _, path := range []string{os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatal("this machine has no bundle of certificates")
	return ""
}

// networked makes a tenant whose key runs programs with a network.
func networked(t *testing.T, s *atolltest.Server, name string, network map[string]any) (key string) {
	t.Helper()
	key = s.Tenant(t, name, "enterprise")
	admin, base := s.AdminKey(t), "/v1/admin/tenants/"+name
	s.Must(t, admin, http.MethodPatch, base, map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	s.Must(t, admin, http.MethodPatch, base+"/environments/main", map[string]any{
		"permissions": map[string]any{"network": network}, "limits": map[string]any{"memory": 1 << 30, "root_size": 300 << 20},
	}).Into(t, http.StatusOK, nil)
	return key
}

// ask runs a program with a key.
func ask(t *testing.T, s *atolltest.Server, key, language, code string) *atolltest.Result {
	t.Helper()
	var r atolltest.Result
	a := s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": language, "code": code, "timeout": 180})
	a.Into(t, http.StatusOK, &r)
	r.Status, r.Header = a.Status, a.Header
	return &r
}

// row returns the audit row of an answer, when there is one.
func outbound(t *testing.T, s *atolltest.Server, name string, r *atolltest.Result) []string {
	t.Helper()
	var page struct {
		Data []struct {
			OutboundHosts []string `json:"outbound_hosts"`
		} `json:"data"`
	}
	s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/"+name+"/audit?trace_id="+r.Header.Get("X-Trace-Id"), nil).Into(t, http.StatusOK, &page)
	if len(page.Data) != 1 {
		t.Fatalf("%d audit rows", len(page.Data))
	}
	return page.Data[0].OutboundHosts
}

// TestInstallThroughRules installs real packages through rules that allow their
// registries and nothing else.
func TestInstallThroughRules(t *testing.T) {
	t.Parallel() // it waits for a network
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_SANDBOX_CA_BUNDLE=" + machineCA(t)}})
	hosts := append(pipHosts(t), host(t, npmRegistry(t)))
	key := networked(t, s, "builders", map[string]any{"enabled": true, "allowed_hosts": hosts, "blocked_ports": []int{8443}})
	for _, c := range []struct{ name, language, code, want, host string }{
		{"pip", atolltest.Bash, "pip install -q --no-cache-dir -i " + pipIndex(t) + " six && python3 -c 'import six; print(six.__name__)'", "six\n", hosts[0]},
		{"npm", atolltest.Bash, "npm install --silent --registry " + npmRegistry(t) + " is-odd && node -e 'console.log(require(\"is-odd\")(3))'", "true\n", hosts[len(hosts)-1]},
		{"requests", atolltest.Python, "import requests; print(requests.get('" + pipIndex(t) + "/six/').status_code)", "200\n", hosts[0]},
		{"urllib", atolltest.Python, "import urllib.request as u; print(u.urlopen('" + pipIndex(t) + "/six/').status)", "200\n", hosts[0]},
		{"preloads", atolltest.Python, "import pandas, urllib.request as u; print(u.urlopen('" + pipIndex(t) + "/six/').status)", "200\n", hosts[0]},
		{"Node", atolltest.Node, "fetch('" + npmRegistry(t) + "is-odd').then(r => console.log(r.status))", "200\n", hosts[len(hosts)-1]},
		{"curl", atolltest.Bash, "curl -fsSo /dev/null -w '%{http_code}\\n' " + npmRegistry(t) + "is-odd", "200\n", hosts[len(hosts)-1]},
		{"getaddrinfo", atolltest.Python, "import socket; print(len(socket.getaddrinfo('" + hosts[0] + "', 443)) > 0)", "True\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ask(t, s, key, c.language, c.code)
			if r.ExitCode != 0 || r.Stdout != c.want {
				t.Fatalf("got %v", r)
			}
			if all := outbound(t, s, "builders", r); c.host != "" && !slices.Contains(all, c.host) {
				t.Errorf("the audit row has %q, not %s", all, c.host)
			}
		})
	}

	refused := ask(t, s, key, atolltest.Bash, "curl -sS --max-time 20 https://example.com/; echo $?; curl -sS --max-time 20 http://169.254.169.254/; echo $?; curl -sS --max-time 20 https://"+hosts[0]+":8443/; echo $?")
	if lines := strings.Fields(refused.Stdout); !slices.Equal(lines, []string{"6", "7", "7"}) {
		t.Errorf("what is not allowed: %v", refused)
	}
	all := outbound(t, s, "builders", refused)
	for _, want := range []string{"refused example.com (allowed_hosts)", "refused 169.254.169.254:80 (floor)", "refused " + hosts[0] + ":8443 (blocked_ports)"} {
		if !slices.Contains(all, want) {
			t.Errorf("the audit row lacks %q: %q", want, all)
		}
	}
	m := s.Metrics(t)
	if m.Sum("atoll_network_bytes_total") == 0 || m.Sum("atoll_network_refusals_total") < 3 {
		t.Error("neither bytes nor refusals are counted")
	}
	var used struct {
		Totals struct {
			BytesOut int64 `json:"bytes_out"`
		} `json:"totals"`
	}
	s.Must(t, key, http.MethodGet, "/v1/usage", nil).Into(t, http.StatusOK, &used)
	if used.Totals.BytesOut == 0 {
		t.Error("the ledger has no bytes")
	}

	// No other environment has a network.
	r := s.Run(t, atolltest.Program{Language: atolltest.Python, Code: "import socket\nprint([n for _, n in socket.if_nameindex()])\ntry: socket.create_connection(('203.0.113.1', 80), 5)\nexcept OSError as e: print(e.strerror)"})
	if r.Stdout != "['lo']\nNetwork is unreachable\n" {
		t.Errorf("an environment that says nothing: %v", r)
	}
}

// TestInstallFromMirrors installs packages with no host allowed, from mirrors
// that the operator names, and only what the operator allows.
func TestInstallFromMirrors(t *testing.T) {
	t.Parallel() // it waits for a network
	s := atolltest.Start(t, atolltest.Options{Env: []string{
		"ATOLL_PIP_INDEX=" + pipIndex(t), "ATOLL_NPM_REGISTRY=" + npmRegistry(t), "ATOLL_PACKAGES=pip:six,npm:is-odd,npm:is-number",
	}})
	key := networked(t, s, "mirrored", map[string]any{"enabled": true, "allowed_hosts": []string{}})
	r := ask(t, s, key, atolltest.Bash, "pip install -q --no-cache-dir six && python3 -c 'import six; print(six.__name__)'; npm install --silent is-odd && node -e 'console.log(require(\"is-odd\")(3))'")
	if r.ExitCode != 0 || r.Stdout != "six\ntrue\n" {
		t.Errorf("what is allowed: %v", r)
	}
	if all := outbound(t, s, "mirrored", r); !slices.Contains(all, host(t, pipIndex(t))) || !slices.Contains(all, host(t, npmRegistry(t))) {
		t.Errorf("the audit row has %q", all)
	}
	r = ask(t, s, key, atolltest.Bash, "pip install -q --no-cache-dir --retries 0 colorama && echo installed; npm install --silent left-pad && echo installed; curl -sS --max-time 20 "+pipIndex(t)+" || echo refused")
	if strings.Contains(r.Stdout, "installed") || !strings.Contains(r.Stdout, "refused") {
		t.Errorf("what is not allowed: %v", r)
	}
}

// TestNetworksAreNotLeaked counts what sandboxes with a network leave, and what
// the next server finds when one is killed.
func TestNetworksAreNotLeaked(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=1"}})
	key := networked(t, s, "leaky", map[string]any{"enabled": true, "allowed_hosts": []string{"example.com"}})
	run := func(n int) {
		for range n {
			s.Settle(t)
			if r := ask(t, s, key, atolltest.Bash, "exec 3<>/dev/tcp/203.0.113.1/80; (sleep 60; exec 4<>/dev/tcp/example.com/80) & echo done"); r.Stdout != "done\n" {
				t.Fatalf("got %v", r)
			}
		}
	}
	run(3)
	before := rest(t, s)
	run(atolltest.Count(6, 200))
	after, left := idle(t, s)
	for deadline := time.Now().Add(30 * time.Second); after != before && time.Now().Before(deadline); {
		after, left = idle(t, s) // what the last request needed ends soon
	}
	if after != before {
		t.Errorf("before: %+v\nafter:  %+v\n%v", before, after, left)
	}

	networks := namespaces(t, s)
	holders := allNamespaces()
	if len(networks) < 2 {
		t.Fatalf("the test does not see the sandboxes' networks: %v", networks)
	}
	data := s.Keep(t)
	if err := s.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait(context.Background())
	next := atolltest.Start(t, atolltest.Options{Data: data})
	next.Settle(t)
	for pid, ns := range allNamespaces() {
		// The kernel gives a new namespace the number of one that is gone.
		if networks[ns] && holders[pid] == ns {
			t.Errorf("process %s still has a network of the killed server", pid)
		}
	}
}

// TestANetworkSurvivesItsServer kills a server under a program that connects
// again and again: the next one puts a stack at the end of its device.
func TestANetworkSurvivesItsServer(t *testing.T) {
	var stop atomic.Bool
	called := make(chan struct{}, 1)
	at := serve(t, func(c net.Conn) {
		if stop.Load() {
			fmt.Fprintln(c, "stop")
		} else {
			fmt.Fprintln(c, "continue")
		}
		select {
		case called <- struct{}{}:
		default:
		}
	})
	env := []string{"ATOLL_NETWORK_ALLOW=" + at, "ATOLL_ON_EXIT=detach"}
	s := atolltest.Start(t, atolltest.Options{Env: env})
	address, port, _ := net.SplitHostPort(at)
	key := networked(t, s, "survivor", map[string]any{"enabled": true, "allowed_hosts": []string{}, "allowed_cidrs": []string{address + "/32"}})
	go func() { // its answer is cut
		_, _ = s.Call(t.Context(), key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": atolltest.Bash, "timeout": 120, "code": fmt.Sprintf(
			`while :; do exec 3<>/dev/tcp/%s/%s && read -t 2 l <&3; [ "$l" = stop ] && echo stopped && exit 0; exec 3>&-; sleep 0.1; done 2>/dev/null`, address, port)}, nil)
	}()
	<-called
	data := s.Keep(t)
	if err := s.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait(context.Background())
	for len(called) > 0 {
		<-called
	}
	next := atolltest.Start(t, atolltest.Options{Data: data, Env: env})
	select {
	case <-called:
	case <-time.After(time.Minute):
		t.Fatal("after the take-over nothing arrives")
	}
	stop.Store(true)
	atolltest.Until(t, time.Minute, "the program ended with success", func() bool {
		var page struct {
			Data []struct {
				Status string `json:"status"`
			} `json:"data"`
		}
		next.Must(t, key, http.MethodGet, "/v1/executions", nil).Into(t, http.StatusOK, &page)
		return len(page.Data) == 1 && page.Data[0].Status == "success"
	})
}

// serve answers connections on an address of this machine that is not its
// loopback, which is another one in a sandbox.
func serve(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.To4() != nil && !n.IP.IsLoopback()
	})
	if i < 0 {
		t.Fatal("this machine has no address but its loopback's")
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addrs[i].(*net.IPNet).IP.String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answer(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// namespaces are the network namespaces of a server's sandboxes.
func namespaces(t *testing.T, s *atolltest.Server) map[string]bool {
	t.Helper()
	left, err := atolltest.Trace(s.Data).Find()
	if err != nil {
		t.Fatal(err)
	}
	own, _ := os.Readlink("/proc/self/ns/net")
	found := map[string]bool{}
	for _, p := range left.Processes {
		pid, _, _ := strings.Cut(p, " ")
		if ns, err := os.Readlink(fmt.Sprintf("/proc/%s/ns/net", pid)); err == nil && ns != own {
			found[ns] = true
		}
	}
	return found
}

// allNamespaces are those that any process is in, or holds open.
func allNamespaces() map[string]string {
	found := map[string]string{}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range append(links, files...) {
		if ns, err := os.Readlink(path); err == nil && strings.HasPrefix(ns, "net:") {
			found[strings.Split(path, "/")[2]+" "+filepath.Base(path)] = ns
		}
	}
	return found
}
