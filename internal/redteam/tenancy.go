package redteam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// tenancyCases are ways to see, use or tell apart what is another tenant's.
func tenancyCases() []Case {
	same := "each answer is, to the letter, that for an id that was never given"
	return []Case{
		{"tenancy/executions", Critical, "reads, follows and cancels the victim's execution by its id", same, foreign("/v1/executions/", "trace_id")},
		{"tenancy/sandboxes", Critical, "uses the victim's sandbox by its id in every operation on sandboxes, files, processes, contexts and previews", same, foreign("/v1/sandboxes/", "sandbox")},
		{"tenancy/snapshots", Critical, "shows and deletes the victim's snapshot by its id", same, foreign("/v1/snapshots/", "snapshot")},
		{"tenancy/environments", Critical, "shows, changes and deletes the victim's environment by its id, with a key that may do so to its own", same, foreignEnvironment},
		{"tenancy/responses", Critical, "reads, follows, cancels, continues and deletes the victim's response by its id", same, foreignResponse},
		{"tenancy/e2b", Critical, "uses the victim's sandbox by its id through E2B's protocol, and turns the access token and the hosts of its own to it", same, foreignE2B},
		{"tenancy/cloudflare", Critical, "uses another tenant's sandbox by its id through Cloudflare's protocol", "the file in it is neither seen nor changed", foreignCloudflare},
		{"tenancy/agents", Critical, "shows, changes and archives the victim's agent by its id, with a key that may do so to its own", same, foreignAgent},
		{"tenancy/files", Critical, "shows, downloads and deletes the victim's uploaded file by its id, with a key that may do so to its own", same, foreignFile},
		{"tenancy/skills", Critical, "shows, downloads, changes and deletes the victim's skill by its id, with a key that may do so to its own", same, foreignSkill},
		{"tenancy/vaults", Critical, "shows, changes and deletes the victim's vault and its credential by their ids, and begins a session with it, with a key that may do so to its own", same, foreignVault},
		{"tenancy/tokens", Critical, "ends the victim's token by its id", same, foreign("/v1/tokens/", "token_id")},
		{"tenancy/sessions", Critical, "shows, changes, writes to and deletes the victim's session by its id, with a key that may do so to its own", same, foreignConversation},
		{"tenancy/threads", Critical, "reads, lists and exports the victim's thread by its name", "the attacker has no such thread", foreignThread},
		{"tenancy/thread-names", High, "makes and deletes a thread of the victim's name", "the victim's thread stays as it is", sameThread},
		{"tenancy/sandbox-names", Critical, "makes, uses and deletes a sandbox of the victim's session and name", "it is another sandbox, and the victim's stays", sameSandbox},
		{"tenancy/restore-snapshot", Critical, "makes a sandbox from the victim's snapshot", "the snapshot does not exist for the attacker", restoreForeign},
		{"tenancy/tool-sessions", Critical, "uses the victim's session with tools: lists its sandboxes and reads its files", "the session has nothing of the victim's", foreignSession},
		{"tenancy/lists", Critical, "lists executions, sandboxes, snapshots, threads and usage, with and without filters", "nothing of the victim is in any list", foreignLists},
		{"tenancy/admin", Critical, "calls every administrative operation on the victim with an ordinary key", "the server answers each with 403", foreignAdmin},
		{"tenancy/signed-urls", Critical, "changes the path, thread, method and signature of a signed URL", "each changed URL is refused", signedURLs},
		{"tenancy/signed-url-of-a-dead-key", High, "uses a signed URL after the key that asked for it was revoked", "it is refused", signedURLOfDeadKey},
		{"tenancy/previews", Critical, "guesses the names of the victim's preview, and takes its own for another port", "a wrong name is answered as one that never was", foreignPreview},
		{"tenancy/other-environment", High, "uses a sandbox of another environment of its own tenant by its id", same, otherEnvironment},
		{"tenancy/timing", Low, "times refusals for the victim's id against those for ids that were never given", "their medians are within 20 ms", timing},
	}
}

// prey is what the victim has, by the name of the parameter that it stands for.
type prey map[string]string

// preySession, preySandbox and preyThread are names that the victim has chosen.
const (
	preySession = "redteam-prey-session"
	preySandbox = "redteam-prey"
	preyThread  = "redteam-prey-thread"
	preyText    = "the victim's own words"
)

// thePrey makes one of everything that the victim can have.
func (a *arena) thePrey(ctx context.Context) (prey, error) {
	return a.prey.get(ctx, func(ctx context.Context) (prey, error) {
		p := prey{"path": "notes.txt", "port": "8000"}
		e, err := a.execute(ctx, a.victim, "python", "print("+fmt.Sprintf("%q", preyText)+")", 20, map[string]any{"metadata": map[string]string{"who": "victim"}})
		if err != nil {
			return nil, err
		}
		if !e.Success {
			return nil, fmt.Errorf("the victim's execution: %s", e)
		}
		p["trace_id"] = e.Trace
		s := sandbox{by: a.victim}
		if err := a.victim.must(ctx, http.MethodPost, "/v1/sandboxes", map[string]any{"name": preySandbox, "session": preySession}, &s); err != nil {
			return nil, err
		}
		p["sandbox"] = s.ID
		var made struct {
			Process  string `json:"process_id"`
			Snapshot string `json:"snapshot_id"`
			Context  string `json:"context_id"`
			ID       string `json:"id"`
		}
		if err := errors.Join(
			a.victim.must(ctx, http.MethodPost, s.path("/processes"), map[string]any{"argv": []string{"sleep", "3000"}}, &made),
			a.victim.must(ctx, http.MethodPost, s.path("/contexts"), map[string]any{"language": "python"}, &made),
			a.victim.must(ctx, http.MethodPut, s.path("/files", "path", "/home/user/notes.txt"), []byte(preyText), nil),
			a.victim.must(ctx, http.MethodPut, "/v1/threads/"+preyThread+"/files/notes.txt", []byte(preyText), nil),
			a.victim.must(ctx, http.MethodPost, s.path("/snapshots"), nil, &made),
			a.admin.must(ctx, http.MethodGet, "/v1/admin/tenants/"+victimTenant+"/environments/"+envPlain, nil, &made),
		); err != nil {
			return nil, err
		}
		var bearer struct{ ID string }
		if err := a.victim.must(ctx, http.MethodPost, "/v1/tokens", map[string]any{"scopes": []string{"read"}}, &bearer); err != nil {
			return nil, err
		}
		p["token_id"] = bearer.ID
		p["process"], p["context"], p["snapshot"], p["environment"] = made.Process, made.Context, made.Snapshot, made.ID
		for _, name := range []string{"process", "context", "snapshot", "environment"} {
			if p[name] == "" {
				return nil, fmt.Errorf("the victim has no %s: %+v", name, made)
			}
		}
		return p, a.preview(ctx, s, p)
	})
}

// preview opens the victim's preview, where this server has previews.
func (a *arena) preview(ctx context.Context, s sandbox, p prey) error {
	got, err := s.by.do(ctx, http.MethodPut, s.path("/previews/8000"), nil)
	if err != nil {
		return err
	}
	if got.Status < 300 {
		p["preview"] = urlOf(got.Body)
	}
	return nil
}

// never returns an id like one that was given, of the same length, that was not.
func never(id string) string {
	cut := max(strings.LastIndexAny(id, "_-")+1, len(id)-16)
	return id[:cut] + token((len(id)-cut)/2)
}

// plainHeaders are those of an answer that do not differ by the moment.
func plainHeaders(h http.Header) string {
	h = maps.Clone(h)
	for _, name := range []string{"Date", "X-Trace-Id", "Content-Length"} {
		h.Del(name)
	}
	var b bytes.Buffer
	_ = h.Write(&b) // to memory
	return b.String()
}

// alike compares the answers to a request for a foreign id and for one that was never
// given, apart from the ids in them.
func alike(what string, real, unknown *answer, id, none string) error {
	hide := func(b []byte) string {
		return strings.NewReplacer(id, "ID", none, "ID", url.QueryEscape(id), "ID").Replace(string(b))
	}
	switch {
	case real.Status < 400:
		return found("%s: %s", what, real)
	case real.Status != unknown.Status || hide(real.Body) != hide(unknown.Body):
		return found("%s: %s for what exists, %s for what does not", what, real, unknown)
	case plainHeaders(real.Header) != plainHeaders(unknown.Header):
		return found("%s: headers %q for what exists, %q for what does not", what, plainHeaders(real.Header), plainHeaders(unknown.Header))
	}
	return nil
}

// foreign calls every operation that takes an id with the victim's and with one that
// does not exist.
func foreign(prefix, param string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		p, err := a.thePrey(ctx)
		if err != nil {
			return err
		}
		return a.compare(ctx, a.plain, p, prefix, param)
	}
}

// compare does it with one caller. An operation whose refusal is not about the id
// shows nothing, so that most must say 404.
func (a *arena) compare(ctx context.Context, by caller, p prey, prefix, param string) error {
	all, err := a.theSpec(ctx)
	if err != nil {
		return err
	}
	ops := all.below(prefix, param)
	var missed []string
	for _, op := range ops {
		with := maps.Clone(map[string]string(p))
		none := never(p[param])
		real, err := by.do(ctx, op.Method, query(op.fill(with)), op.Body)
		if err != nil {
			return err
		}
		with[param] = none
		unknown, err := by.do(ctx, op.Method, query(op.fill(with)), op.Body)
		if err != nil {
			return err
		}
		if err := alike(op.Method+" "+op.Path, real, unknown, p[param], none); err != nil {
			return err
		}
		if real.Status != http.StatusNotFound {
			missed = append(missed, fmt.Sprintf("%s %s: %s", op.Method, op.Path, real))
		}
	}
	if len(ops) == 0 || len(missed) > len(ops)/4 {
		return fmt.Errorf("of %d operations these were refused for another reason: %s", len(ops), strings.Join(missed, "; "))
	}
	return nil
}

// query adds the parameters that operations on files of sandboxes and executions require.
func query(path string) string {
	for _, prefix := range []string{"/v1/files/", "/v1/threads/", "/v1/containers/", "/v1/responses/", "/v1/agent/", "/v1/vaults/", "/v1/sessions/sess_", "/default/v1/sessions/"} {
		if strings.HasPrefix(path, prefix) {
			return path // the file is in it
		}
	}
	if strings.Contains(path, "/files") || strings.HasSuffix(path, "/archive") || strings.HasSuffix(path, "/file") {
		return path + "?path=/home/user/notes.txt"
	}
	if strings.HasSuffix(path, "/fork") {
		return path + "?count=1"
	}
	return path
}

func foreignEnvironment(ctx context.Context, a *arena) error {
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	c, err := a.key(ctx, attackerTenant, envPlain, "environments")
	if err != nil {
		return err
	}
	return errors.Join(a.compare(ctx, c, p, "/v1/environments/", "environment"), a.compare(ctx, c, p, "/default/v1/environments/", "environment"))
}

func foreignAgent(ctx context.Context, a *arena) (err error) {
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	model := "redteam-agent-" + a.run
	remove, err := a.model(ctx, model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var made struct{ ID string }
	of := map[string]any{"name": "Prey", "system": preyText, "model": map[string]any{"name": model}}
	if err := a.victim.must(ctx, http.MethodPost, "/v1/agents", of, &made); err != nil {
		return err
	}
	p = maps.Clone(p)
	p["agent"], p["version"] = made.ID, "1"
	defer func() { // what is archived is not listed
		_ = a.victim.must(context.WithoutCancel(ctx), http.MethodPost, "/v1/agents/"+made.ID+"/archive", nil, nil)
	}()
	c, err := a.key(ctx, attackerTenant, envPlain, "execute", "read")
	if err != nil {
		return err
	}
	return errors.Join(a.compare(ctx, c, p, "/v1/agents/", "agent"), a.compare(ctx, c, p, "/default/v1/agents/", "agent"))
}

func foreignSkill(ctx context.Context, a *arena) error {
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	const edge = "redteam"
	name := "prey-" + strings.ToLower(a.run)
	body := fmt.Sprintf("--%[1]s\r\nContent-Disposition: form-data; name=\"files[]\"; filename=\"%[2]s/SKILL.md\"\r\n\r\n---\nname: %[2]s\ndescription: %[3]s\n---\n%[3]s\r\n--%[1]s--\r\n", edge, name, preyText)
	made, err := a.victim.do(ctx, http.MethodPost, "/v1/skills", []byte(body), "Content-Type", "multipart/form-data; boundary="+edge)
	if err != nil {
		return err
	}
	var skill struct{ ID string }
	if err := json.Unmarshal(made.Body, &skill); err != nil || made.Status/100 != 2 {
		return fmt.Errorf("POST /v1/skills: %s", made)
	}
	defer func() {
		_ = a.victim.must(context.WithoutCancel(ctx), http.MethodDelete, "/v1/skills/"+skill.ID, nil, nil)
	}()
	p = maps.Clone(p)
	p["skill_id"], p["version"] = skill.ID, "1"
	c, err := a.key(ctx, attackerTenant, envPlain, "execute", "read")
	if err != nil {
		return err
	}
	return a.compare(ctx, c, p, "/v1/skills/", "skill_id")
}

func foreignVault(ctx context.Context, a *arena) (err error) {
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	owner, err := a.key(ctx, victimTenant, envPlain, "environments", "read")
	if err != nil {
		return err
	}
	var vault, credential struct{ ID string }
	if err := owner.must(ctx, http.MethodPost, "/v1/vaults", map[string]any{"display_name": preyText}, &vault); err != nil {
		return err
	}
	defer func() {
		_ = owner.must(context.WithoutCancel(ctx), http.MethodDelete, "/v1/vaults/"+vault.ID, nil, nil)
	}()
	auth := map[string]any{"type": "host_secret", "secret_name": "PREY", "secret_value": preyText, "hosts": []string{"api.example.com"}}
	if err := owner.must(ctx, http.MethodPost, "/v1/vaults/"+vault.ID+"/credentials", map[string]any{"auth": auth}, &credential); err != nil {
		return err
	}
	seen, err := owner.do(ctx, http.MethodGet, "/v1/vaults/"+vault.ID+"/credentials/"+credential.ID, nil)
	if err != nil {
		return err
	}
	if bytes.Contains(seen.Body, []byte(preyText)) {
		return found("the secret of a credential is shown: %s", seen)
	}
	p = maps.Clone(p)
	p["vault_id"], p["credential_id"] = vault.ID, credential.ID
	c, err := a.key(ctx, attackerTenant, envPlain, "environments", "read", "execute")
	if err != nil {
		return err
	}
	model := "redteam-vault-" + a.run
	remove, err := a.model(ctx, model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var agent struct{ ID string }
	if err := c.must(ctx, http.MethodPost, "/v1/agents", map[string]any{"name": "Thief", "model": map[string]any{"name": model}}, &agent); err != nil {
		return err
	}
	defer func() {
		_ = c.must(context.WithoutCancel(ctx), http.MethodPost, "/v1/agents/"+agent.ID+"/archive", nil, nil)
	}()
	got, err := c.do(ctx, http.MethodPost, "/v1/sessions", map[string]any{"agent_id": agent.ID, "vault_ids": []string{vault.ID}})
	if err != nil {
		return err
	}
	if got.Status != http.StatusNotFound {
		return found("a session with the victim's vault: %s", got)
	}
	return a.compare(ctx, c, p, "/v1/vaults/", "vault_id")
}

func foreignFile(ctx context.Context, a *arena) error {
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	const edge = "redteam"
	body := fmt.Sprintf("--%[1]s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"prey.txt\"\r\n\r\n%[2]s\r\n--%[1]s--\r\n", edge, preyText)
	made, err := a.victim.do(ctx, http.MethodPost, "/v1/files", []byte(body), "Content-Type", "multipart/form-data; boundary="+edge)
	if err != nil {
		return err
	}
	var file struct{ ID string }
	if err := json.Unmarshal(made.Body, &file); err != nil || made.Status/100 != 2 {
		return fmt.Errorf("POST /v1/files: %s", made)
	}
	defer func() {
		_ = a.victim.must(context.WithoutCancel(ctx), http.MethodDelete, "/v1/files/"+file.ID, nil, nil)
	}()
	p = maps.Clone(p)
	p["file_id"] = file.ID
	c, err := a.key(ctx, attackerTenant, envPlain, "execute", "read")
	if err != nil {
		return err
	}
	return a.compare(ctx, c, p, "/v1/files/", "file_id")
}

func foreignConversation(ctx context.Context, a *arena) (err error) {
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	model := "redteam-session-" + a.run
	remove, err := a.model(ctx, model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var agent, made struct{ ID string }
	of := map[string]any{"name": "Prey", "model": map[string]any{"name": model}}
	if err := a.victim.must(ctx, http.MethodPost, "/v1/agents", of, &agent); err != nil {
		return err
	}
	if err := a.victim.must(ctx, http.MethodPost, "/v1/sessions", map[string]any{"agent_id": agent.ID, "title": preyText}, &made); err != nil {
		return err
	}
	p = maps.Clone(p)
	p["session_id"] = made.ID
	defer func() {
		_ = a.victim.must(context.WithoutCancel(ctx), http.MethodDelete, "/v1/sessions/"+made.ID, nil, nil)
		_ = a.victim.must(context.WithoutCancel(ctx), http.MethodPost, "/v1/agents/"+agent.ID+"/archive", nil, nil)
	}()
	c, err := a.key(ctx, attackerTenant, envPlain, "execute", "read")
	if err != nil {
		return err
	}
	return errors.Join(a.compare(ctx, c, p, "/v1/sessions/", "session_id"), a.compare(ctx, c, p, "/default/v1/sessions/", "session_id"))
}

// unseen reports answers that have the victim's words in them, or anything at all.
func unseen(what string, got *answer, err error, statuses ...int) error {
	switch {
	case err != nil:
		return err
	case bytes.Contains(got.Body, []byte(preyText)) || bytes.Contains(got.Body, []byte("notes.txt")) && got.Status < 300:
		return found("%s shows what is the victim's: %s", what, got)
	case !slices.Contains(statuses, got.Status):
		return found("%s: %s, want %v", what, got, statuses)
	}
	return nil
}

func foreignThread(ctx context.Context, a *arena) error {
	a.names.Lock()
	defer a.names.Unlock()
	if _, err := a.thePrey(ctx); err != nil {
		return err
	}
	at := "/v1/threads/" + preyThread
	for _, path := range []string{at, at + "/files", at + "/files/notes.txt", at + "/archive"} {
		got, err := a.plain.do(ctx, http.MethodGet, path, nil)
		if err := unseen("GET "+path, got, err, http.StatusNotFound); err != nil {
			return err
		}
		unknown, err := a.plain.do(ctx, http.MethodGet, strings.Replace(path, preyThread, "redteam-never-thread", 1), nil)
		if err != nil {
			return err
		}
		if err := alike("GET "+path, got, unknown, preyThread, "redteam-never-thread"); err != nil {
			return err
		}
	}
	e, err := a.execute(ctx, a.plain, "bash", "cat notes.txt; ls -a", 20, map[string]any{"thread_id": preyThread})
	if err != nil {
		return err
	}
	if strings.Contains(e.Stdout, preyText) || strings.Contains(e.Stdout, "notes.txt") {
		return found("a program in a thread of the same name sees %q", e.Stdout)
	}
	return gone(ctx, a.plain, at)
}

func sameThread(ctx context.Context, a *arena) error {
	a.names.Lock()
	defer a.names.Unlock()
	if _, err := a.thePrey(ctx); err != nil {
		return err
	}
	at := "/v1/threads/" + preyThread
	if err := a.plain.must(ctx, http.MethodPut, at+"/files/notes.txt", []byte("the attacker's"), nil); err != nil {
		return err
	}
	if err := gone(ctx, a.plain, at); err != nil {
		return err
	}
	return a.intact(ctx, at+"/files/notes.txt")
}

// intact looks whether a file of the victim's has its words.
func (a *arena) intact(ctx context.Context, path string) error {
	got, err := a.victim.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK || string(got.Body) != preyText {
		return found("the victim's file is now %s", got)
	}
	return nil
}

func sameSandbox(ctx context.Context, a *arena) error {
	a.names.Lock()
	defer a.names.Unlock()
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	s := sandbox{by: a.plain}
	if err := a.plain.must(ctx, http.MethodPost, "/v1/sandboxes", map[string]any{"name": preySandbox, "session": preySession}, &s); err != nil {
		return err
	}
	if s.ID == p["sandbox"] {
		return found("the attacker was given the victim's sandbox %s", s.ID)
	}
	got, err := s.by.do(ctx, http.MethodGet, s.path("/files", "path", "/home/user/notes.txt"), nil)
	if err := unseen("the sandbox of the same name", got, err, http.StatusNotFound); err != nil {
		return err
	}
	if err := gone(ctx, a.plain, "/v1/sandboxes/"+preySandbox+"?session="+preySession); err != nil {
		return err
	}
	theirs := sandbox{by: a.victim, ID: p["sandbox"]}
	return a.intact(ctx, theirs.path("/files", "path", "/home/user/notes.txt"))
}

func restoreForeign(ctx context.Context, a *arena) error {
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	ask := func(id string) (*answer, error) {
		return a.plain.do(ctx, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "redteam-thief", "snapshot": id})
	}
	none := never(p["snapshot"])
	real, err := ask(p["snapshot"])
	if err != nil {
		return err
	}
	unknown, err := ask(none)
	if err != nil {
		return err
	}
	return alike("a sandbox from the snapshot", real, unknown, p["snapshot"], none)
}

func foreignSession(ctx context.Context, a *arena) error {
	a.names.Lock()
	defer a.names.Unlock()
	if _, err := a.thePrey(ctx); err != nil {
		return err
	}
	at := "/v1/sessions/" + preySession + "/tools/"
	got, err := a.plain.do(ctx, http.MethodPost, at+"sandbox_list", map[string]any{})
	if err := unseen("sandbox_list", got, err, http.StatusOK); err != nil {
		return err
	}
	if strings.Contains(string(got.Body), preySandbox) {
		return found("sandbox_list shows the victim's sandbox: %s", got)
	}
	got, err = a.plain.do(ctx, http.MethodPost, at+"read_file", map[string]any{"sandbox": preySandbox, "path": "/home/user/notes.txt"})
	if err != nil {
		return err
	}
	if bytes.Contains(got.Body, []byte(preyText)) {
		return found("read_file shows the victim's file: %s", got)
	}
	return gone(ctx, a.plain, "/v1/sandboxes/"+preySandbox+"?session="+preySession)
}

func foreignLists(ctx context.Context, a *arena) error {
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	for _, list := range []string{
		"/v1/executions", "/v1/executions?metadata.who=victim", "/v1/executions?status=success", "/v1/sandboxes", "/v1/sandboxes?session=" + preySession,
		"/v1/snapshots", "/v1/threads", "/v1/usage",
	} {
		for _, c := range []caller{a.plain, a.net} {
			got, err := c.do(ctx, http.MethodGet, list, nil)
			if err != nil {
				return err
			}
			if got.Status != http.StatusOK {
				return fmt.Errorf("GET %s: %s", list, got)
			}
			for _, id := range []string{p["trace_id"], p["sandbox"], p["snapshot"], a.ids[victimTenant], victimTenant} {
				if id != "" && bytes.Contains(got.Body, []byte(id)) {
					return found("GET %s shows %s", list, id)
				}
			}
		}
	}
	return nil
}

func foreignAdmin(ctx context.Context, a *arena) error {
	all, err := a.theSpec(ctx)
	if err != nil {
		return err
	}
	var tried int
	for _, op := range all {
		if !strings.HasPrefix(op.Path, "/v1/admin/") || op.Path == "/v1/admin/sandboxes/orphans" && op.Method == http.MethodDelete {
			continue // which, where it were allowed, would do something to others
		}
		tried++
		got, err := a.plain.do(ctx, op.Method, op.fill(map[string]string{"tenant": victimTenant, "environment": envPlain, "plan": planName}), op.Body)
		if err != nil {
			return err
		}
		if got.Status != http.StatusForbidden {
			return found("%s %s with an ordinary key: %s", op.Method, op.Path, got)
		}
	}
	if tried < 10 {
		return fmt.Errorf("the server's document has %d administrative operations", tried)
	}
	return nil
}

// otherEnvironment does to a sandbox of another environment what foreign does to
// another tenant's.
func otherEnvironment(ctx context.Context, a *arena) error {
	theirs, err := a.theWire(ctx)
	if err != nil {
		return err
	}
	return a.compare(ctx, a.plain, prey{"sandbox": theirs.ID, "process": "redteam-none", "context": "redteam-none", "port": "8000", "path": "notes.txt"}, "/v1/sandboxes/", "sandbox")
}

func timing(ctx context.Context, a *arena) error {
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	const samples = 31
	var took [2][]time.Duration
	for i := range 2 * samples {
		id := p["sandbox"]
		if i%2 == 1 {
			id = never(id)
		}
		began := time.Now()
		got, err := a.plain.do(ctx, http.MethodGet, "/v1/sandboxes/"+id, nil)
		if err != nil {
			return err
		}
		if got.Status != http.StatusNotFound {
			return found("GET of sandbox %s: %s", id, got)
		}
		took[i%2] = append(took[i%2], time.Since(began))
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	real, unknown := took[0][samples/2], took[1][samples/2]
	if d := (real - unknown).Abs(); d > 20*time.Millisecond {
		return found("the median is %v for what exists and %v for what does not", real, unknown)
	}
	return nil
}
