package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Judge is a running go-judge, whose programs see the image's /usr.
type Judge struct {
	rig    *Rig
	url    string
	cmd    *exec.Cmd
	group  string       // control group it makes
	output bytes.Buffer // of the process; read when it has ended
	ended  chan struct{}
	client *http.Client
}

// ServeJudge builds and starts go-judge. The caller must Stop it.
func (r *Rig) ServeJudge(ctx context.Context) (*Judge, error) {
	binary, err := r.build(ctx, "bench/gojudge", "github.com/criyle/go-judge/cmd/go-judge", "go-judge")
	if err != nil {
		return nil, err
	}
	dir, err := r.Temp("go-judge")
	if err != nil {
		return nil, err
	}
	mounts := filepath.Join(dir, "mount.yaml")
	if err := os.WriteFile(mounts, []byte(judgeMounts(r.Bare)), 0o644); err != nil {
		return nil, err
	}
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	group := filepath.Base(dir) // unlike any other, so that it can be removed
	j := &Judge{
		rig: r, url: "http://" + address, group: group, ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}},
	}
	j.cmd = exec.Command(binary, "-http-addr="+address, "-mount-conf="+mounts, "-dir="+dir, "-pre-fork=4", "-silent", "-cgroup-prefix="+group)
	j.cmd.Dir = dir
	j.cmd.Stdout, j.cmd.Stderr = &j.output, &j.output
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := j.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = j.cmd.Wait() // read from its state
		close(j.ended)
	}()
	for ctx.Err() == nil {
		if _, err = j.Execute(ctx, Program{Language: "bash", Code: "echo 1", Want: "1\n"}); err == nil {
			return j, nil
		}
		select {
		case <-j.ended:
			return nil, errors.Join(fmt.Errorf("go-judge ended: %s: %s", j.cmd.ProcessState, tail(strings.TrimSpace(j.output.String()))), j.Stop())
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, errors.Join(err, j.Stop())
		}
	}
	return nil, errors.Join(context.Cause(ctx), j.Stop())
}

// judgeMounts is the file system that go-judge gives to programs: its own
// default, with the image's folders in the place of this machine's.
func judgeMounts(root string) string {
	var b strings.Builder
	b.WriteString("mount:\n")
	fmt.Fprintf(&b, "  - {type: bind, source: %s/usr, target: /usr, readonly: true}\n", root)
	fmt.Fprintf(&b, "  - {type: bind, source: %s/etc, target: /etc, readonly: true}\n", root)
	for _, dev := range []string{"null", "urandom"} {
		fmt.Fprintf(&b, "  - {type: bind, source: /dev/%s, target: /dev/%s}\n", dev, dev)
	}
	b.WriteString("  - {type: tmpfs, target: /w, data: \"size=128m,nr_inodes=4k\"}\n")
	b.WriteString("  - {type: tmpfs, target: /tmp, data: \"size=128m,nr_inodes=4k\"}\n")
	b.WriteString("proc: true\nworkDir: /w\nhostName: go-judge\ndomainName: go-judge\nuid: 1536\ngid: 1536\n")
	b.WriteString("symLink:\n")
	for _, dir := range []string{"bin", "lib", "lib64", "sbin"} {
		fmt.Fprintf(&b, "  - {linkPath: /%s, target: usr/%s}\n", dir, dir)
	}
	return b.String()
}

// Execute runs a program and returns the time until the whole answer was read.
func (j *Judge) Execute(ctx context.Context, p Program) (time.Duration, error) {
	body, err := json.Marshal(map[string]any{"cmd": []any{map[string]any{
		"args": j.rig.argv(p), "env": j.rig.env(),
		"files":    []any{map[string]any{"content": ""}, map[string]any{"name": "stdout", "max": 1 << 20}, map[string]any{"name": "stderr", "max": 1 << 20}},
		"cpuLimit": 60e9, "memoryLimit": 512 << 20, "procLimit": 256,
	}}})
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.url+"/run", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := j.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	took := time.Since(begun)
	if err != nil {
		return 0, err
	}
	var out []struct {
		Status string
		Files  struct{ Stdout string }
	}
	if res.StatusCode != http.StatusOK || json.Unmarshal(answer, &out) != nil || len(out) != 1 || out[0].Status != "Accepted" {
		return 0, fmt.Errorf("go-judge answered %d: %.400s", res.StatusCode, answer)
	}
	return took, p.check(out[0].Files.Stdout)
}

// Stop ends go-judge.
func (j *Judge) Stop() error {
	j.client.CloseIdleConnections()
	_ = j.cmd.Process.Signal(syscall.SIGTERM) // one that has ended is what is wanted
	select {
	case <-j.ended:
		return removeGroups(j.group)
	case <-time.After(stopWait):
		_ = j.cmd.Process.Kill() // likewise
		<-j.ended
		return errors.Join(fmt.Errorf("go-judge did not stop within %s", stopWait), removeGroups(j.group))
	}
}

// removeGroups removes the control groups of a name with all below them, in
// every hierarchy.
func removeGroups(name string) error {
	var errs []error
	for _, pattern := range []string{name, "*/" + name} {
		roots, err := filepath.Glob(filepath.Join("/sys/fs/cgroup", pattern))
		if err != nil {
			return err
		}
		for _, root := range roots {
			var dirs []string
			errs = append(errs, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return err
			}))
			for _, dir := range slices.Backward(dirs) { // what is inside comes after what it is in
				errs = append(errs, removeGroup(dir))
			}
		}
	}
	return errors.Join(errs...)
}

// removeGroup removes one. Processes that were killed are still in it for a moment.
func removeGroup(dir string) error {
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err := os.Remove(dir); !errors.Is(err, syscall.EBUSY) || time.Now().After(until) {
			return err
		}
	}
}
