package redteam

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// cliCases run the atoll command on this machine against a hostile server.
func cliCases() []Case {
	return []Case{
		{"cli/files", Critical, "answers downloads of shared files with names that lead out of the directory, start with a dot or contain a line break", "the command writes nothing outside the directory, and no hidden file", cliFiles},
		{"cli/copies", Critical, "answers copies from a sandbox with hostile archives", "the command writes nothing outside its target directory", cliCopies},
		{"cli/terminal", High, "answers lists, events, files and errors with terminal control sequences", "the command prints none of them", cliTerminal},
		{"cli/redirects", Critical, "redirects each request to another server", "the command does not send its key there", cliRedirects},
	}
}

// hostile is a server on loopback that attacks the command.
type hostile struct {
	url    string
	server *http.Server

	mu   sync.Mutex
	seen []http.Header
}

func newHostile(ctx context.Context, answer http.HandlerFunc) (*hostile, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &hostile{url: "http://" + listener.Addr().String()}
	h.server = &http.Server{ReadHeaderTimeout: rawTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.seen = append(h.seen, r.Header.Clone())
		h.mu.Unlock()
		answer(w, r)
	})}
	go func() { _ = h.server.Serve(listener) }() // returns when the case closes the server
	return h, nil
}

func (h *hostile) headers() []http.Header {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]http.Header(nil), h.seen...)
}

// commandTime is the time limit of one command.
const commandTime = 20 * time.Second

// cliKey is the API key of the command.
const cliKey = "sk-atoll-redteam-0000000000000000"

// command runs the atoll command against a server, with home as its home and working directory, and
// returns its output.
func (a *arena) command(ctx context.Context, url, home string, args ...string) (string, error) {
	if a.opts.Program == "" {
		return "", skip("not run: needs the path of the atoll command")
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.opts.Program, args...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ATOLL_BASE_URL=" + url, "ATOLL_API_KEY=" + cliKey}
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); ended && ctx.Err() == nil {
		err = nil // the command rejected the server's answer
	}
	return string(out), err
}

// workplace creates a home directory for a command, and below it the directory out, where the command
// may write. Cases pass both to outside afterwards.
func workplace() (home, out string, remove func(), err error) {
	if home, err = os.MkdirTemp("", "atoll-redteam-"); err != nil {
		return "", "", nil, err
	}
	out = filepath.Join(home, "a", "b", "out")
	return home, out, func() { _ = os.RemoveAll(home) }, os.MkdirAll(out, 0o700)
}

// outside reports files that the command wrote outside out.
func outside(home, out string) error {
	if _, err := os.Lstat("/tmp/redteam-escape"); err == nil {
		_ = os.Remove("/tmp/redteam-escape")
		return found("the command wrote /tmp/redteam-escape")
	}
	return filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(out, path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(below, "..") && !strings.Contains(path, "/.") {
			return found("the command wrote %s, outside its target directory", path)
		}
		return nil
	})
}

// hostileNames are names of shared files.
var hostileNames = []string{
	"../redteam-escape", "../../../redteam-escape", "/tmp/redteam-escape", "a/../../redteam-escape", `..\redteam-escape`, ".bashrc", ".ssh/authorized_keys", "..", ".", "", "a\nb", "a\x00b", "~/.profile", "a/b/redteam-escape", "good.txt",
}

func cliFiles(ctx context.Context, a *arena) error {
	h, err := newHostile(ctx, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/content") {
			_, _ = w.Write([]byte(payload))
			return
		}
		list := []any{}
		for i, name := range hostileNames {
			list = append(list, map[string]any{"id": fmt.Sprintf("file_%d", i), "file_id": fmt.Sprintf("file_%d", i), "filename": name, "bytes": len(payload)})
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(asJSON(map[string]any{"data": list})))
	})
	if err != nil {
		return err
	}
	defer h.server.Close()
	home, out, remove, err := workplace()
	if err != nil {
		return err
	}
	defer remove()
	for range 2 { // the second time, the files exist
		if _, err := a.command(ctx, h.url, home, "session", "files", "sess_"+strings.Repeat("0", 32), "--out", out); err != nil {
			return err
		}
	}
	if len(h.headers()) == 0 {
		return errors.New("the command sent no request")
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || strings.ContainsAny(e.Name(), "\n\x1b") {
			return found("the command wrote the file %q", e.Name())
		}
	}
	return outside(home, out)
}

func cliCopies(ctx context.Context, a *arena) error {
	rooted := hostileArchive{name: "rooted", entries: []tar.Header{{Typeflag: tar.TypeDir, Name: ".", Mode: 0o755}, file("../redteam-escape"), link("up", ".."), file("up/redteam-escape")}}
	for _, archive := range append(hostileArchives, rooted) {
		body, err := archive.pack()
		if err != nil {
			return err
		}
		h, err := newHostile(ctx, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tarMedia)
			_, _ = w.Write(body)
		})
		if err != nil {
			return err
		}
		err = a.copied(ctx, h, archive.name)
		if err := errors.Join(err, h.server.Close()); err != nil {
			return err
		}
	}
	return nil
}

// copied copies a directory from a hostile server into an existing directory and into a new one.
func (a *arena) copied(ctx context.Context, h *hostile, name string) error {
	home, out, remove, err := workplace()
	if err != nil {
		return err
	}
	defer remove()
	for _, to := range []string{out, filepath.Join(out, "new")} {
		if _, err := a.command(ctx, h.url, home, "sandbox", "cp", "box:src", to); err != nil {
			return err
		}
	}
	if len(h.headers()) == 0 {
		return errors.New("the command sent no request")
	}
	if err := outside(home, out); err != nil {
		return fmt.Errorf("an archive with %s: %w", name, err)
	}
	return nil
}

// obeyed are sequences that terminals obey: colors, titles, clipboard access, and control characters
// that work without an escape character.
const obeyed = "\x1b[31m\x1b]0;title\x07\x1b]52;c;eA==\x07\x9b31m\u009b31m\x08\r\x7f\u202e"

func cliTerminal(ctx context.Context, a *arena) error {
	row := map[string]any{}
	for _, name := range []string{
		"id", "name", "slug", "title", "status", "session_id", "agent_id", "sandbox_id", "session", "image", "filename", "content", "type", "text", "description", "display_name", "message", "error", "model",
		"thread_id", "execution_id", "trace_id", "exit_reason", "process_id", "snapshot_id", "stop_reason_text", "tool_use_id", "arguments", "reason", "hint", "provider", "upstream", "base_url", "system", "state",
	} {
		row[name] = "x" + obeyed
	}
	row["bytes"], row["version"], row["latest_version"] = 1, 1, 1
	status := http.StatusOK
	h, err := newHostile(ctx, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		answer := map[string]any{"data": []any{row}}
		for k, v := range row {
			answer[k] = v
		}
		_, _ = w.Write([]byte(asJSON(answer)))
	})
	if err != nil {
		return err
	}
	defer h.server.Close()
	home, _, remove, err := workplace()
	if err != nil {
		return err
	}
	defer remove()
	id := strings.Repeat("0", 32)
	lines := []string{
		"agent list", "session list", "agent show x", "agent versions x", "session events sess_" + id, "session files sess_" + id, "session context sess_" + id, "sandbox list --all", "skill list", "skill show x", "vault list",
		"model list", "model show x", "thread list", "snapshot list", "tenant list", "key list x", "env list x", "audit list x", "execution show trc_" + id,
	}
	for _, status = range []int{http.StatusOK, http.StatusBadRequest} {
		if status != http.StatusOK {
			lines = lines[:2] // all commands print errors in the same way
		}
		for _, line := range lines {
			before := len(h.headers())
			out, err := a.command(ctx, h.url, home, strings.Fields(line)...)
			if err != nil {
				return err
			}
			if len(h.headers()) == before {
				continue // this version lacks the command
			}
			if i := strings.IndexAny(out, "\x1b\x07\x08\r\x7f\u009b\u202e"); i >= 0 {
				return found("atoll %s prints %q", line, out[max(0, i-40):min(len(out), i+40)])
			}
			if bytes.Contains([]byte(out), []byte("\x9b31m")) && !strings.Contains(out, "\u009b31m") {
				return found("atoll %s prints the byte 9b", line)
			}
		}
	}
	if len(h.headers()) < 10 {
		return fmt.Errorf("the commands sent only %d requests", len(h.headers()))
	}
	return nil
}

func cliRedirects(ctx context.Context, a *arena) error {
	other, err := newHostile(ctx, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data":[]}`)) })
	if err != nil {
		return err
	}
	defer other.server.Close()
	home, out, remove, err := workplace()
	if err != nil {
		return err
	}
	defer remove()
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		h, err := newHostile(ctx, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", other.url+r.URL.Path)
			w.WriteHeader(status)
		})
		if err != nil {
			return err
		}
		for _, line := range []string{"agent list", "session list", "sandbox list", "model list", "sandbox cp box:src " + out, "sandbox exec box -- true", "ask hello --model x"} {
			if _, err := a.command(ctx, h.url, home, strings.Fields(line)...); err != nil {
				return err
			}
		}
		asked := len(h.headers())
		if err := h.server.Close(); err != nil {
			return err
		}
		if asked == 0 {
			return errors.New("the commands sent no request")
		}
	}
	for _, header := range other.headers() {
		if strings.Contains(header.Get("Authorization"), cliKey) {
			return found("the command followed a redirect and sent its key to another server")
		}
	}
	return nil
}
