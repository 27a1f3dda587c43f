package redteam

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// canaryCases store known words on the server, and search for them later.
func canaryCases() []Case {
	return []Case{
		{"canaries/at-rest", Critical, "stores secrets, prompts, files and keys on the server, and searches its data directory for them", "the data directory contains none of them in plain text, base64 or hexadecimal", canariesAtRest},
		{"canaries/deleted", Critical, "deletes everything that it stored on the server, reads it again by every id, and searches lists and the data directory", "the server neither returns nor keeps it", canariesDeleted},
	}
}

// nest records the words and objects that a case stored on the server.
type nest struct {
	by    caller
	words map[string]string // by description
	paths []string          // objects to delete, dependents first
	lists []string
}

// openFolders hold the data that the server keeps in plain text, according to
// docs/reference/security-data.md: images, and files of programs while a sandbox uses them.
var openFolders = []string{"images", "state", "homes"}

// given returns a new word, and records it under its description.
func (n *nest) given(what string) string {
	n.words[what] = "redteam-canary-" + token(12)
	return n.words[what]
}

// made creates an object, records its path for remove and its list, and returns the path.
func (n *nest) made(ctx context.Context, path string, body any) (string, error) {
	var it struct {
		ID      string
		Sandbox string `json:"sandbox_id"`
	}
	if err := n.by.must(ctx, http.MethodPost, path, body, &it); err != nil {
		return "", err
	}
	at := path + "/" + it.ID + it.Sandbox
	n.paths = append([]string{at}, n.paths...)
	n.lists = append(n.lists, path)
	return at, nil
}

// lay stores a word of each kind on the server.
func (a *arena) lay(ctx context.Context) (*nest, error) {
	it, err := a.theActor(ctx)
	if err != nil {
		return nil, err
	}
	n := &nest{words: map[string]string{}, lists: []string{"/v1/executions", "/v1/threads", "/v1/usage"}}
	env := "redteam-nest-" + token(4)
	if _, err = a.room(ctx, attackerTenant, env, map[string]any{"secrets": map[string]string{"REDTEAM_CANARY": n.given("a secret of an environment")}}); err != nil {
		return nil, err
	}
	if n.by, err = a.key(ctx, attackerTenant, env, "execute", "read", "tools", "sandboxes", "environments"); err != nil {
		return nil, err
	}
	n.words["an API key"] = n.by.key
	t, err := newToken(ctx, a, n.by, map[string]any{"scopes": []string{"read"}})
	if err != nil {
		return nil, err
	}
	if n.words["a token"] = t.key; t.key == "" {
		return nil, errors.New("the server created a token but did not return it")
	}
	model := modelPrefix + "nest-" + token(4)
	body := map[string]any{"name": model, "provider": "openai", "base_url": "https://redteam.invalid/v1", "key": n.given("a key of a model's provider"), "tenants": []string{attackerTenant}}
	if err := a.admin.must(ctx, http.MethodPost, "/v1/admin/models", body, nil); err != nil {
		return nil, err
	}
	a.later(func(ctx context.Context) error { return gone(ctx, a.admin, "/v1/admin/models/"+model) })
	return n, errors.Join(n.layAgents(ctx, it), n.layFiles(ctx), n.layPrograms(ctx))
}

// layAgents stores words in vaults, agents, sessions and responses.
func (n *nest) layAgents(ctx context.Context, it actor) error {
	vault, err := n.made(ctx, "/v1/vaults", map[string]any{"display_name": n.given("the name of a vault")})
	if err != nil {
		return err
	}
	auth := map[string]any{"type": "host_secret", "secret_name": "REDTEAM_VAULT", "secret_value": n.given("a secret of a vault"), "hosts": []string{"api.example.com"}}
	if err := n.by.must(ctx, http.MethodPost, vault+"/credentials", map[string]any{"auth": auth}, nil); err != nil {
		return err
	}
	agent, err := n.made(ctx, "/v1/agents", map[string]any{"name": "Nest", "model": map[string]any{"name": it.model}, "system": n.given("the instructions of an agent")})
	if err != nil {
		return err
	}
	session, err := n.made(ctx, "/v1/sessions", map[string]any{"agent_id": strings.TrimPrefix(agent, "/v1/agents/"), "title": n.given("the title of a session"), "metadata": map[string]any{"x": n.given("metadata of a session")}})
	if err != nil {
		return err
	}
	answer := n.given("an answer of a model")
	s := it.lure.play(func(int) reply { return reply{Text: answer} })
	if err := n.by.must(ctx, http.MethodPost, session+"/events", map[string]any{"type": "message", "content": s.id + " " + n.given("a message")}, nil); err != nil {
		return err
	}
	_, err = n.made(ctx, "/v1/responses", map[string]any{"model": it.model, "input": s.id + " " + n.given("the input of a response"), "instructions": n.given("the instructions of a response")})
	n.lists = slices.DeleteFunc(n.lists, func(list string) bool { return list == "/v1/responses" }) // the API does not list responses
	return err
}

// layFiles stores words in uploads, skills and threads.
func (n *nest) layFiles(ctx context.Context) error {
	skill := "nest-" + token(4)
	for path, file := range map[string]struct{ field, name, text string }{
		"/v1/files":  {"file", "nest.txt", n.given("an uploaded file")},
		"/v1/skills": {"files[]", skill + "/SKILL.md", "---\nname: " + skill + "\ndescription: " + n.given("the description of a skill") + "\n---\n" + n.given("the instructions of a skill") + "\n"},
	} {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		part, err := w.CreateFormFile(file.field, file.name)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(part, file.text); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		got, err := n.by.do(ctx, http.MethodPost, path, body.Bytes(), "Content-Type", w.FormDataContentType())
		if err != nil {
			return err
		}
		if got.Status >= 300 {
			return fmt.Errorf("POST %s: %s", path, got)
		}
		n.paths = append(n.paths, path+"/"+idIn(got.Body))
		n.lists = append(n.lists, path)
	}
	thread := "/v1/threads/redteam-" + skill
	n.paths = append(n.paths, thread)
	return n.by.must(ctx, http.MethodPut, thread+"/files/nest.txt", []byte(n.given("a file of a thread")), nil)
}

// layPrograms stores words in executions and in a snapshot of a sandbox.
func (n *nest) layPrograms(ctx context.Context) error {
	got, err := n.by.do(ctx, http.MethodPost, executePath, map[string]any{
		"language": "python", "code": "x = '" + n.given("the code of an execution") + "'", "env_vars": map[string]string{"X": n.given("a variable of an execution")}, "stdin": n.given("the stdin of an execution"),
		"files": map[string]string{"x": n.given("a file of an execution")},
	}, idempotencyHeader, "redteam-"+token(8))
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK {
		return fmt.Errorf("the execution: %s", got)
	}
	n.paths = append(n.paths, "/v1/executions/"+got.Header.Get("X-Trace-Id"))
	at, err := n.made(ctx, "/v1/sandboxes", map[string]any{"name": "redteam-nest-" + token(4)})
	if err != nil {
		return err
	}
	if err := n.by.must(ctx, http.MethodPut, at+"/files?path=/home/user/nest.txt", []byte(n.given("a file of a snapshot")), nil); err != nil {
		return err
	}
	var made struct {
		ID string `json:"snapshot_id"`
	}
	if err := n.by.must(ctx, http.MethodPost, at+"/snapshots", nil, &made); err != nil {
		return err
	}
	n.paths = append(n.paths, "/v1/snapshots/"+made.ID)
	n.lists = append(n.lists, "/v1/snapshots")
	return nil
}

// forms returns the encodings of a word that search looks for.
func forms(word string) (all [][]byte) {
	all = append(all, []byte(word), []byte(hex.EncodeToString([]byte(word))))
	for shift := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(bytes.Repeat([]byte{0}, shift), word...))
		all = append(all, []byte(text[(shift*8+5)/6:len(word)*8/6])) // the characters that encode nothing of neighbouring bytes
	}
	return all
}

// eachPiece reads searched bytes at a time. Pieces share overlap bytes, so that search finds words
// across their borders.
const (
	searched = 4 * mib
	overlap  = 4096
)

// search reports the first file of the data directory that contains one of the words.
func (a *arena) search(words map[string]string) error {
	type needle struct {
		what string
		form []byte
	}
	var needles []needle
	for _, what := range slices.Sorted(maps.Keys(words)) {
		for _, f := range forms(words[what]) {
			needles = append(needles, needle{what, f})
		}
	}
	return filepath.WalkDir(a.opts.Data, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // the server deleted it during the walk
		case err != nil:
			return err
		case d.IsDir() && filepath.Dir(path) == filepath.Clean(a.opts.Data) && slices.Contains(openFolders, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		return eachPiece(path, func(piece []byte) error {
			for _, n := range needles {
				if bytes.Contains(piece, n.form) {
					return found("the file %s of the data directory contains %s", strings.TrimPrefix(path, a.opts.Data), n.what)
				}
			}
			return nil
		})
	})
}

// eachPiece reads a file in overlapping pieces.
func eachPiece(path string, see func([]byte) error) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	buf, kept := make([]byte, searched+overlap), 0
	for {
		n, err := io.ReadFull(f, buf[kept:])
		if n > 0 {
			if err := see(buf[:kept+n]); err != nil {
				return err
			}
			kept = copy(buf, buf[max(0, kept+n-overlap):kept+n])
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// atData skips a case that cannot search the data directory.
func (a *arena) atData() error {
	if a.opts.Data == "" {
		return skip("not run: needs the server's data directory; run this on the server's machine as its user, with --data-dir")
	}
	if _, err := os.ReadDir(a.opts.Data); err != nil {
		return skip("not run: needs to read the server's data directory: %v", err)
	}
	return nil
}

func canariesAtRest(ctx context.Context, a *arena) error {
	if err := a.atData(); err != nil {
		return err
	}
	n, err := a.lay(ctx)
	if err != nil {
		return err
	}
	if err := a.search(n.words); err != nil {
		return err
	}
	return n.remove(ctx)
}

// remove deletes everything that the case stored.
func (n *nest) remove(ctx context.Context) error {
	for _, at := range n.paths {
		if strings.HasPrefix(at, "/v1/sessions/") {
			if err := endSession(ctx, n.by, at); err != nil {
				return err
			}
			continue
		}
		if err := gone(ctx, n.by, at); err != nil {
			return err
		}
	}
	return nil
}

func canariesDeleted(ctx context.Context, a *arena) error {
	n, err := a.lay(ctx)
	if err != nil {
		return err
	}
	if err := n.remove(ctx); err != nil {
		return err
	}
	delete(n.words, "an API key") // the case still uses it
	for _, at := range n.paths {
		if strings.HasPrefix(at, "/v1/sandboxes/") {
			at += "/files?path=/home/user/nest.txt" // the server keeps the record of a deleted sandbox
		}
		got, err := n.by.do(ctx, http.MethodGet, at, nil)
		if err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 || !strings.HasPrefix(at, "/v1/sandboxes/") && got.Status != http.StatusNotFound {
			return found("GET %s after its deletion: %s", at, got)
		}
	}
	for _, list := range n.lists {
		got, err := n.by.do(ctx, http.MethodGet, list, nil)
		if err != nil {
			return err
		}
		if got.Status != http.StatusOK {
			return fmt.Errorf("GET %s: %s", list, got)
		}
		for what, word := range n.words {
			if bytes.Contains(got.Body, []byte(word)) {
				return found("GET %s shows %s after its deletion", list, what)
			}
		}
	}
	if a.atData() != nil {
		return nil // without the data directory, the case can check only the answers
	}
	return a.forgotten(ctx, n)
}

// forgetTime is how long the server may keep the files of a deleted home directory.
const forgetTime = 20 * time.Second

// forgotten waits until the server has deleted the plain-text files of deleted threads and sandboxes.
func (a *arena) forgotten(ctx context.Context, n *nest) error {
	if err := a.search(n.words); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, forgetTime)
	defer cancel()
	for {
		err := a.searchOpen(n.words["a file of a thread"], n.words["a file of a snapshot"])
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// searchOpen looks for words in the folders where the server keeps files of programs in plain text.
func (a *arena) searchOpen(words ...string) error {
	for _, folder := range openFolders[1:] {
		err := filepath.WalkDir(filepath.Join(a.opts.Data, folder), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
				return nil
			}
			if err != nil {
				return err
			}
			return eachPiece(path, func(piece []byte) error {
				for _, w := range words {
					if bytes.Contains(piece, []byte(w)) {
						return found("the file %s of the data directory contains deleted data", strings.TrimPrefix(path, a.opts.Data))
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
