package e2e

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// volumeOf gives a tenant's executions a managed volume, and returns its id.
func volumeOf(t *testing.T, s *atolltest.Server, tenant, slug string) (id string) {
	t.Helper()
	admin, base := s.AdminKey(t), "/v1/admin/tenants/"+tenant+"/connections"
	var made struct {
		ID string `json:"id"`
	}
	s.Must(t, admin, http.MethodPost, base, map[string]any{"slug": slug, "kind": "volume"}).Into(t, http.StatusCreated, &made)
	s.Must(t, admin, http.MethodPost, base+"/"+slug+"/grants", map[string]any{"environment": "main"}).Into(t, http.StatusCreated, nil)
	return made.ID
}

// TestVolumes has programs write to managed volumes, wherever the operator keeps
// them, and lists them.
func TestVolumes(t *testing.T) {
	s3 := atolltest.StartS3(t)
	folder := filepath.Join(t.TempDir(), "volumes")
	for _, c := range []struct {
		name, setting, stored string // stored is the folder that is to have them
	}{
		{"folder", folder, folder},
		{"bucket", s3.URL + "&prefix=kept/volumes/", filepath.Join(s3.Bucket, "kept", "volumes")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := atolltest.Start(t, atolltest.Options{Env: []string{
				"ATOLL_VOLUMES=" + c.setting, "AWS_ACCESS_KEY_ID=" + atolltest.S3AccessKey, "AWS_SECRET_ACCESS_KEY=" + atolltest.S3SecretKey,
			}})
			key, other := s.Tenant(t, "acme", "enterprise"), s.Tenant(t, "rival", "enterprise")
			id := volumeOf(t, s, "acme", "team")
			volumeOf(t, s, "rival", "team")

			r := ask(t, s, key, atolltest.Python, `import os
os.makedirs("/data/team/reports/q1"); open("/data/team/reports/q1/f", "w").write("kept"); open("/data/team/top", "w").write("123")
print(sorted(os.listdir("/data/team")))`)
			if r.Stdout != "['reports', 'top']\n" {
				t.Fatalf("got %v", r)
			}
			found, err := exec.CommandContext(t.Context(), "find", c.stored, "-name", "f").Output()
			if err != nil || !strings.HasSuffix(strings.TrimSpace(string(found)), "/"+id+"/reports/q1/f") || bytes.Count(found, []byte("\n")) != 1 {
				t.Errorf("the file is kept as %s (%v)", found, err)
			}
			if b, err := os.ReadFile(strings.TrimSpace(string(found))); err != nil || string(b) != "kept" {
				t.Errorf("it holds %q (%v)", b, err)
			}
			if r := ask(t, s, key, atolltest.Bash, "cat /data/team/reports/q1/f; echo more >> /data/team/top; cat /data/team/top"); r.Stdout != "kept123more\n" {
				t.Errorf("the next program: %v", r)
			}
			if r := ask(t, s, other, atolltest.Bash, "ls -A /data/team"); r.Stdout != "" || r.Stderr != "" {
				t.Errorf("another tenant's volume of the same name: %v", r)
			}

			atolltest.Until(t, time.Minute, "a run with a grant finds a sandbox ready", func() bool {
				var r struct {
					Start string `json:"start"`
				}
				s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": atolltest.Bash, "code": "true"}).Into(t, http.StatusOK, &r)
				return r.Start == "warm"
			})

			sandboxHas(t, s, key, c.name == "folder")

			list := func(path string) (names []string) {
				t.Helper()
				var page struct {
					Files []struct {
						Path string `json:"path"`
						Size int64  `json:"size"`
						Dir  bool   `json:"is_directory"`
					} `json:"files"`
				}
				s.Must(t, key, http.MethodPost, "/v1/files/list", map[string]any{"source": "volume", "id": "team", "path": path}).Into(t, http.StatusOK, &page)
				for _, f := range page.Files {
					if f.Dir == (f.Size > 0) {
						t.Errorf("%s: %d bytes, folder %v", f.Path, f.Size, f.Dir)
					}
					names = append(names, f.Path)
				}
				return names
			}
			if all := strings.Join(list(""), " ") + "; " + strings.Join(list("reports/q1"), " "); all != "reports top; reports/q1/f" {
				t.Errorf("the listings are %q", all)
			}
		})
	}
}

// sandboxHas checks that a named sandbox has the volume that executions have, or is
// refused with what to change.
func sandboxHas(t *testing.T, s *atolltest.Server, key string, can bool) {
	t.Helper()
	shell := map[string]any{"command": "cat /data/team/reports/q1/f && touch /data/team/reports/q1/of-sandbox"}
	if !can {
		for path, body := range map[string]any{"/v1/sandboxes": map[string]any{"name": "one"}, "/v1/sessions/s/tools/shell": shell} {
			a := s.Must(t, key, http.MethodPost, path, body)
			if a.Status != http.StatusForbidden || !strings.Contains(string(a.Body), `volume \"team\"`) || !strings.Contains(string(a.Body), "use a key whose environment") {
				t.Errorf("%s in an environment with a bucket: %d %s", path, a.Status, a.Body)
			}
		}
		return
	}
	var out struct {
		Stdout string `json:"stdout"`
		Stderr string `json:"stderr"`
	}
	s.Must(t, key, http.MethodPost, "/v1/sessions/s/tools/shell", shell).Into(t, http.StatusOK, &out)
	if out.Stdout != "kept" {
		t.Errorf("a named sandbox: %+v", out)
	}
	if r := ask(t, s, key, atolltest.Bash, "rm /data/team/reports/q1/of-sandbox && echo gone"); r.Stdout != "gone\n" {
		t.Errorf("a program after a sandbox: %v", r)
	}
	var rows struct {
		Data []struct {
			Source string   `json:"source"`
			Mounts []string `json:"mounts"`
		} `json:"data"`
	}
	s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/acme/audit?session_id=s", nil).Into(t, http.StatusOK, &rows)
	if len(rows.Data) != 1 || strings.Join(rows.Data[0].Mounts, " ") != "team/:rw" {
		t.Errorf("on record: %+v", rows)
	}
	s.Must(t, key, http.MethodDelete, "/v1/sandboxes/default?session=s", nil)
}

// TestVolumesThatCannotBe checks what a server says of a setting that is wrong.
func TestVolumesThatCannotBe(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	for value, says := range map[string]string{
		"volumes":         "absolute path, or a bucket's URL",
		"file:///volumes": "write a folder as a path",
		"ftp://x/volumes": "volumes:",
	} {
		cmd := exec.CommandContext(t.Context(), binary, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--image", "host", "--volumes", value)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: %v: %s", value, err, out)
		}
	}
	// So is a bucket that does not answer.
	cmd := exec.CommandContext(t.Context(), binary, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--image", "host",
		"--volumes", "s3://nowhere?region=us-east-1&use_path_style=true&endpoint=http://127.0.0.1:1")
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "volumes: cannot write an object in the bucket") || strings.Contains(string(out), "sk-atoll-") {
		t.Errorf("a bucket that does not answer: %v: %s", err, out)
	}
}
