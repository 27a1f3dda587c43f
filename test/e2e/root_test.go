package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/test/atolltest"
)

// TestRoot runs programs as root of their sandbox, where the tenant's policy allows it
// and only there, and tries what root may not do.
func TestRoot(t *testing.T) {
	s := shared(t)
	key, admin := s.Tenant(t, "rooted", "enterprise"), s.AdminKey(t)
	const policy, environment = "/v1/admin/tenants/rooted", "/v1/admin/tenants/rooted/environments/main"
	root := object{"permissions": object{"process": object{"root": true}}}
	if a := s.Must(t, admin, http.MethodPatch, environment, root); a.Status != http.StatusForbidden || !strings.Contains(string(a.Body), "atoll tenant set rooted --root") {
		t.Fatalf("root without the tenant's policy: HTTP %d: %s", a.Status, a.Body)
	}
	id := func(want string) {
		t.Helper()
		for _, language := range []string{atolltest.Bash, atolltest.Python} {
			code := map[string]string{atolltest.Bash: "id -u", atolltest.Python: "import os, pandas; print(os.getuid())"}[language]
			if r := runAs(t, s, key, atolltest.Program{Language: language, Code: code, Timeout: 60}); r.Stdout != want {
				t.Errorf("%s as %q: %v", language, want, r)
			}
		}
	}
	id("1000\n")
	s.Must(t, admin, http.MethodPatch, policy, object{"root_enabled": true}).Into(t, http.StatusOK, nil)
	s.Must(t, admin, http.MethodPatch, environment, root).Into(t, http.StatusOK, nil)
	id("0\n")

	for name, c := range map[string]struct{ code, want string }{
		"files of the image": {"rm /usr/bin/less && echo x > /usr/bin/less && chown 5:5 /usr/bin/less && stat -c %u:%g /usr/bin/less", "5:5\n"},
		"other users":        {"setpriv --reuid=42 --regid=42 --clear-groups id -u; id -u", "42\n0\n"},
		"capabilities":       {"grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | cut -f2 | sort -u; grep NoNewPrivs /proc/self/status", "0000000000000000\n00000000000000eb\nNoNewPrivs:\t1\n"},
		"set-user-ID":        {"cp /usr/bin/id /tmp/id; chmod 4755 /tmp/id; setpriv --reuid=42 --clear-groups /tmp/id -u", "42\n"},
		"devices":            {"mknod /root/null c 1 3; mknod /tmp/disk b 254 0; ls /root /tmp", "/root:\n\n/tmp:\n"},
		"mounts":             {"mount -t tmpfs x /mnt; mount --bind /tmp /mnt; mount -o remount,rw /.atoll; umount /tmp; umount -l /proc; chroot /tmp; ls /proc/self/status; echo x > /.atoll/x", "/proc/self/status\n"},
		"process 1":          {"cat /proc/1/environ /proc/1/mem; for f in /proc/1/fd/*; do (exec 3<$f && echo open) done; echo end", "end\n"},
		"kernel":             {"echo x > /proc/sys/kernel/hostname; hostname x; date -s 2001-01-01 > /dev/null; dd if=/dev/mem count=1; swapon /tmp/x; echo end", "end\n"},
		"processes":          {"ulimit -Hu 100000 || echo bound; ulimit -u 40; sh -c 'for i in $(seq 60); do sleep 9 & done; echo reached'; echo end", "bound\nend\n"},
		"all processes":      {"kill -9 -1; echo end", "end\n"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if r := runAs(t, s, key, atolltest.Program{Language: atolltest.Bash, Code: "{ " + c.code + "; } 2>/dev/null", Timeout: 30}); !matches(c.want, r.Stdout) {
				t.Errorf("want %q, got %v", c.want, r)
			}
		})
	}
	sockets := `
import socket
for kind in (socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_PACKET, socket.SOCK_RAW, 0):
  try: socket.socket(*kind); print("open")
  except OSError as e: print(e.strerror)`
	if r := runAs(t, s, key, atolltest.Program{Language: atolltest.Python, Code: sockets, Timeout: 30}); r.Stdout != strings.Repeat("Operation not permitted\n", 2) {
		t.Errorf("sockets: %v", r)
	}
	rules := object{"permissions": object{"filesystem": object{"writable_paths": []string{"/tmp"}, "blocked_paths": []string{"/etc/passwd"}}, "process": object{"max_processes": 8, "blocked_commands": []string{"dd"}}}}
	s.Must(t, admin, http.MethodPatch, environment, rules).Into(t, http.StatusOK, nil)
	ruled := `id -u; { echo x > /usr/x; echo x > ~/x; cat /etc/passwd; umount -l /etc/passwd; mount -o remount,rw,bind /; unshare -Urm sh -c 'umount -l /etc/passwd; mount -o remount,rw,bind /; cat /etc/passwd; echo x > /usr/x'; } 2>/dev/null; ls /usr/x; ls ~; dd`
	if r := runAs(t, s, key, atolltest.Program{Language: atolltest.Bash, Code: ruled, Timeout: 30}); r.Stdout != "0\nmain.sh\n" || !strings.Contains(r.Reason(), "blocked_commands") {
		t.Errorf("rules: %v", r)
	}
	rules = object{"permissions": object{"filesystem": object{"writable_paths": []string{"/"}, "blocked_paths": []string{}}, "process": object{"max_processes": 0, "blocked_commands": []string{}}}}
	s.Must(t, admin, http.MethodPatch, environment, rules).Into(t, http.StatusOK, nil)

	r := newResource(t, s, key, "default")
	if got := r.shell("id -u; cd; mkdir -m 700 d; echo root > d/f; chmod 600 d/f; cp /usr/bin/id d/id; chmod 4755 d/id; chown 1000:7 d/id"); got != "0\n" {
		t.Errorf("got %q", got)
	}
	if got := r.got(r.send(http.MethodGet, "/files?path=d/f", nil), http.StatusOK); string(got) != "root\n" {
		t.Errorf("a file of root's: %q", got)
	}
	r.got(r.send(http.MethodPut, "/files?path=d/new", []byte("x")), http.StatusOK)
	r.got(r.send(http.MethodGet, "/archive?path=d", nil), http.StatusOK)
	id0 := strings.TrimPrefix(r.path, "/v1/sandboxes/")
	folders, err := filepath.Glob(filepath.Join(s.Data, "state", "server", "sandboxes", id0, "files", "share", "home", "d"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("the sandbox's home on the host: %q, %v", folders, err)
	}
	for name, uid := range map[string]uint32{"": 0, "f": 0, "new": 0, "id": 1000} {
		st, err := os.Lstat(filepath.Join(folders[0], name))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := st.Sys().(*syscall.Stat_t).Uid; got != idmap.Base+uid {
			t.Errorf("%q belongs to %d of the host", name, got)
		}
	}
	r.ask(http.MethodDelete, "/files?path=d&recursive=true", nil, http.StatusNoContent)

	s.Must(t, admin, http.MethodPatch, policy, object{"root_enabled": false}).Into(t, http.StatusOK, nil)
	if a := s.Must(t, key, http.MethodGet, r.path+"/files/stat?path=/", nil); a.Status != http.StatusForbidden || !strings.Contains(string(a.Body), "root") {
		t.Errorf("a sandbox with root that the policy does not allow any more: HTTP %d: %s", a.Status, a.Body)
	}
	id("1000\n")
	r.ask(http.MethodDelete, "", nil, http.StatusNoContent)
}

// TestApt installs a package of the system in a named sandbox that may reach no host:
// the server passes on what apt asks of the archive that the default image names.
func TestApt(t *testing.T) {
	t.Parallel() // it waits for a network
	s := shared(t)
	key, admin := s.Tenant(t, "apt", "enterprise"), s.AdminKey(t)
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/apt", object{"network_enabled": true, "root_enabled": true}).Into(t, http.StatusOK, nil)
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/apt/environments/main", object{
		"permissions": object{"network": object{"enabled": true, "allowed_hosts": []string{}}, "process": object{"root": true}},
	}).Into(t, http.StatusOK, nil)
	r := newResource(t, s, key, "default")
	if got := r.shell("(apt-get update && apt-get install -y --no-install-recommends hello) >log 2>&1 || cat log; hello"); got != "Hello, world!\n" {
		t.Errorf("got %s", got)
	}
}
