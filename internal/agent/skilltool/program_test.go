package skilltool

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// runs has this machine's Python do a call of a program, and returns what it writes.
func runs(t *testing.T, program, dir string, call map[string]any, env ...string) []byte {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("this machine has no python3: make test-deps installs it")
	}
	in, err := json.Marshal(call)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), python, "-c", program)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, bytes.NewReader(in), t.Output()
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "TMPDIR="+dir)
	out, err := cmd.Output()
	if len(out) == 0 {
		t.Fatalf("%v: %v", call["do"], err)
	}
	return out
}

func answerOf(t *testing.T, said []byte) (text, refused string) {
	t.Helper()
	a, err := filetool.Parse(said)
	if err != nil {
		t.Fatalf("%s: %v", said, err)
	}
	_, text = a.Split()
	if a.Failed {
		return "", text
	}
	return text, ""
}

// TestSecretsInAnswers: what covers secrets in the output of programs finds them in what a
// document says, however they are written there.
func TestSecretsInAnswers(t *testing.T) {
	const secret = `pa"ss\wörd 1`
	covers, err := redact.New(redact.Config{Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	inJSON, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := strings.Join([]string{secret, string(inJSON), `'` + secret + `'`, "“AKIAQWERTYUIOPASDFGH”"}, "\n\n")
	if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	call := map[string]any{"formats": formats, "most": 1 << 20, "room": 1000, "do": "convert", "file_path": "a.md", "to_path": "a.docx"}
	runs(t, documents, dir, call)
	call["do"], call["file_path"] = "read", "a.docx"
	var covered bytes.Buffer
	if _, err := redact.Copy(covers, &covered, bytes.NewReader(runs(t, documents, dir, call))); err != nil {
		t.Fatal(err)
	}
	told, _ := answerOf(t, covered.Bytes())
	if !strings.HasSuffix(told, "[redacted]\n\n\"[redacted]\"\n\n'[redacted]'\n\n“[redacted:aws-access-key]”") {
		t.Errorf("the model is told %q", told)
	}
}
