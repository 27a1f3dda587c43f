package e2e

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// copier is a program that gives back its stdin and a file, and shows its arguments.
const copier = `
import os, shutil, sys
print(sys.argv[1:])
os.makedirs("result/sub")
with open("result/stdin.bin", "wb") as f: shutil.copyfileobj(sys.stdin.buffer, f)
shutil.copy("data.bin", "result/sub/ä b.bin")
os.symlink("/etc/passwd", "result/link")
open("else", "w").write(os.environ.get("SECRET", ""))
sys.exit(7)
`

func randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// TestRunInput gives programs arguments, stdin and files by atoll run, and takes their
// files back.
func TestRunInput(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	s := shared(t)
	for how, env := range map[string][]string{
		"alone":  {"PATH=" + os.Getenv("PATH"), "ATOLL_DATA_DIR=" + s.Data, "ATOLL_IMAGE=" + atolltest.Image},
		"remote": {"PATH=" + os.Getenv("PATH"), "ATOLL_BASE_URL=" + s.URL, "ATOLL_API_KEY=" + atolltest.Key},
	} {
		t.Run(how, func(t *testing.T) {
			dir, stdin, data := t.TempDir(), randomBytes(1<<20), randomBytes(1<<20)
			for name, content := range map[string][]byte{"job.py": []byte(copier), "in.bin": data} {
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), binary, "run", "job.py", "a b", "--file", "in.bin:data.bin", "--out", "result", "--", "line 1\nline 2", "--out", "")
			var stdout, stderr bytes.Buffer
			cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, env, bytes.NewReader(stdin), &stdout, &stderr
			_ = cmd.Run() // the exit code tells
			if code := cmd.ProcessState.ExitCode(); code != 7 || stdout.String() != "['a b', 'line 1\\nline 2', '--out', '']\n" || stderr.Len() != 0 {
				t.Fatalf("exit code %d, %q and %q", code, stdout.String(), stderr.String())
			}
			for name, want := range map[string][]byte{"stdin.bin": stdin, "sub/ä b.bin": data} {
				if got, err := os.ReadFile(filepath.Join(dir, "result", name)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s came back as %d bytes, %v", name, len(got), err)
				}
			}
			for _, name := range []string{"result/link", "else"} {
				if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
					t.Errorf("%s came back", name)
				}
			}
		})
	}
	s.Settle(t)
}

// TestExecuteInput does so over HTTP, and tries what is refused.
func TestExecuteInput(t *testing.T) {
	s := shared(t)
	const path = "/v1/sandbox/execute"
	var ran struct {
		Stdout string
		Files  []struct {
			Path string
			Size int64
		}
		Truncated bool `json:"files_truncated"`
	}
	answer := s.Must(t, atolltest.Key, "POST", path, map[string]any{
		"language": "bash", "args": []string{"x y"}, "stdin": "ü\n", "outputs": []string{"out/", "none"},
		"files": map[string]string{"in/a": "text"}, "files_base64": map[string]string{"in/b": base64.StdEncoding.EncodeToString([]byte{0, 255})},
		"code": `printf '%s|' "$1"; cat; cat in/a in/b > out/both; : > out/empty`,
	})
	answer.Into(t, http.StatusOK, &ran)
	if ran.Stdout != "x y|ü\n" || ran.Truncated || len(ran.Files) != 2 || ran.Files[0].Path != "out/both" || ran.Files[0].Size != 6 || ran.Files[1].Path != "out/empty" {
		t.Fatalf("got %+v", ran)
	}
	file := "/v1/executions/" + answer.Header.Get("X-Trace-Id") + "/file?path="
	if got := s.Must(t, atolltest.Key, "GET", file+"out/both", nil); string(got.Body) != "text\x00\xff" {
		t.Errorf("out/both is %q", got.Body)
	}
	if got := s.Must(t, atolltest.Key, "GET", file+"out/empty", nil); len(got.Body) != 0 {
		t.Errorf("out/empty is %q", got.Body)
	}
	for name, c := range map[string]struct {
		body map[string]any
		says string
	}{
		"absolute":        {map[string]any{"files": map[string]string{"/etc/x": ""}}, "must be a path below the working folder"},
		"parent":          {map[string]any{"files": map[string]string{"a/../../x": ""}}, "must be a path below the working folder"},
		"output's parent": {map[string]any{"outputs": []string{".."}}, "must be a path below the working folder"},
		"control":         {map[string]any{"files": map[string]string{"a\x00": ""}}, "without control characters"},
		"the program":     {map[string]any{"files": map[string]string{"main.py": ""}}, "reserved for the program's code"},
		"file and folder": {map[string]any{"files": map[string]string{"a": "", "a/b": ""}}, "needs it as a folder"},
		"both stdins":     {map[string]any{"stdin": "", "stdin_base64": ""}, "must not be given together"},
		"no base64":       {map[string]any{"stdin_base64": "ä"}, "stdin_base64 must be base64"},
		"NUL":             {map[string]any{"args": []string{"a\x00"}}, "args must not contain a NUL character"},
		"long arguments":  {map[string]any{"args": []string{strings.Repeat("a", 65<<10)}}, "args together must be at most 65536 bytes"},
		"too much":        {map[string]any{"stdin": strings.Repeat("a", 3<<20), "files": map[string]string{"a": strings.Repeat("a", 2<<20)}}, "stdin and files together must be at most 4194304 bytes"},
	} {
		c.body["code"] = "print(1)"
		got, err := s.Call(t.Context(), atolltest.Key, "POST", path, c.body, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != http.StatusBadRequest || !strings.Contains(string(got.Body), c.says) {
			t.Errorf("%s: %d %.200s", name, got.Status, got.Body)
		}
	}
	if got, err := s.Call(t.Context(), atolltest.Key, "GET", file+"out/none", nil, nil); err != nil || got.Status != http.StatusNotFound {
		t.Errorf("a file that is none: %+v, %v", got, err)
	}
}
