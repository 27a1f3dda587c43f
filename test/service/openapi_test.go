package service

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/openapitest"
)

// described is a server whose answers are held against its OpenAPI document.
type described struct {
	*atolltest.Server
	key   string // with every scope but admin
	admin string
	saved map[string]string
}

// TestOpenAPI calls every operation of the document at a real server, has a fuzzer call
// them, and generates clients that call some.
func TestOpenAPI(t *testing.T) {
	t.Parallel() // with TestLongWaits, which mostly waits
	models := filepath.Join(t.TempDir(), "models.yaml")
	if err := os.WriteFile(models, []byte("models:\n  - {name: declared, provider: openai-chat, base_url: 'http://127.0.0.1:9/v1', key_env: PROVIDER_KEY}\n"+
		"  - {name: claude-sonnet-4, provider: anthropic, key_env: PROVIDER_KEY}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := atolltest.Start(t, atolltest.Options{Env: append([]string{"ATOLL_VOLUMES=" + filepath.Join(t.TempDir(), "volumes"), "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_POOL_SIZE=2", "ATOLL_MODELS_FILE=" + models, "PROVIDER_KEY=sk-of-the-provider"}, searchSettings...)})
	admin := s.AdminKey(t)
	s.Tenant(t, "described", "enterprise")
	d := &described{Server: s, admin: admin, saved: map[string]string{}}
	var made struct{ Key string }
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/described/keys", map[string]any{
		"name": "all", "environment": "main", "scopes": []string{"execute", "read", "tools", "sandboxes", "environments"},
	}).Into(t, http.StatusCreated, &made)
	d.key = made.Key
	t.Run("every operation", d.everyOperation)
	t.Run("agents", d.agents)
	// Readers run at once and without t.Parallel: TestLongWaits holds one of two turns for a minute.
	t.Run("read by", func(t *testing.T) {
		var readers sync.WaitGroup
		for name, reader := range map[string]func(*testing.T){"python": d.python, "typescript": d.typescript, "go": d.golang} {
			readers.Go(func() { t.Run(name, reader) })
		}
		readers.Wait()
	})
	t.Run("fuzzed", d.fuzz) // at the end: it changes plans and fills the tenant's limits
}

// step is a call of the API. Words in braces are what earlier steps have saved.
type step struct {
	method, path string // what is behind # is preferred
	body         any    // JSON; bytes as they are; nil for none
	status       int
	save         string // a member of the answer, or of its first item, by which later steps have it
}

// members is a JSON object of names and values.
func members(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// sandboxSteps call every operation on the sandbox dev once.
func sandboxSteps(t *testing.T) []step {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	const one = "/v1/sandboxes/dev"
	o, archive := members, tarOf(t, "file", "text")
	return []step{
		{get, "/v1/sandboxes", nil, 200, ""}, {get, one, nil, 200, ""},
		{put, one + "/timeout", o("timeout_ms", 3_600_000), 200, ""}, {put, one + "/network", o("enabled", false), 200, ""},
		{put, one + "/files?path=f", []byte("text"), 200, ""}, {get, one + "/files?path=f", nil, 200, ""}, {get, one + "/files/stat?path=f", nil, 200, ""},
		{get, one + "/files/list", nil, 200, ""}, {post, one + "/files/directories?path=d", nil, 200, ""}, {post, one + "/files/move?from=f&to=d/f", nil, 200, ""},
		{get, one + "/archive?path=d", nil, 200, ""}, {put, one + "/archive?path=d", archive, 200, ""}, {del, one + "/files?path=d&recursive=true", nil, 204, ""},
		{get, one + "/files/watch", nil, 200, ""},
		{post, one + "/processes", o("command", "cat", "stdin", true), 201, "process_id"}, {get, one + "/processes", nil, 200, ""},
		{get, one + "/processes/{process_id}", nil, 200, ""}, {post, one + "/processes/{process_id}/stdin", []byte("text\n"), 200, ""},
		{post, one + "/processes/{process_id}/signal", o("signal", "TERM"), 200, ""}, {get, one + "/processes/{process_id}/wait", nil, 200, ""},
		{get, one + "/processes/{process_id}/output", nil, 200, ""}, {del, one + "/processes/{process_id}", nil, 204, ""}, {post, one + "/processes:killall", nil, 204, ""},
		{post, one + "/contexts", o("language", "bash"), 201, "context_id"}, {get, one + "/contexts", nil, 200, ""}, {get, one + "/contexts/{context_id}", nil, 200, ""},
		{post, one + "/contexts/{context_id}/run", o("code", "echo text"), 200, ""}, {post, one + "/contexts/{context_id}/interrupt", nil, 204, ""},
		{post, one + "/contexts/{context_id}/restart", nil, 200, ""}, {del, one + "/contexts/{context_id}", nil, 204, ""},
		{put, one + "/previews/8000", nil, 200, ""}, {get, one + "/previews", nil, 200, ""}, {del, one + "/previews/8000", nil, 204, ""},
		{get, one + "/metrics", nil, 200, ""}, {get, one + "/ports", nil, 200, ""},
		{post, one + "/terminal/ticket", nil, 201, "ticket"}, {get, one + "/terminal?command=true&ticket={ticket}", nil, 101, ""},
		{post, one + "/snapshots", nil, 201, "snapshot_id"}, {get, "/v1/snapshots", nil, 200, ""}, {get, "/v1/snapshots/{snapshot_id}", nil, 200, ""}, {del, "/v1/snapshots/{snapshot_id}", nil, 204, ""},
		{post, one + "/fork", nil, 201, ""}, {post, one + "/sleep", nil, 200, ""}, {post, one + "/restart", nil, 200, ""},
	}
}

// everyOperation calls all of them once, as one customer might. Each answer is as the
// document has it, and no operation is left out.
func (d *described) everyOperation(t *testing.T) {
	const get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
	o := members
	const (
		one    = "/v1/sandboxes/dev"
		tools  = "/v1/sessions/default/tools/"
		tenant = "/v1/admin/tenants/made"
	)
	archive := tarOf(t, "file", "text")
	ping := o("jsonrpc", "2.0", "id", 1, "method", "initialize", "params", o("protocolVersion", "2025-06-18", "capabilities", o(), "clientInfo", o("name", "test", "version", "1")))
	steps := []step{
		{get, "/healthz", nil, 200, ""}, {get, "/readyz", nil, 200, ""}, {get, "/metrics", nil, 200, ""},

		{post, "/v1/sandbox/execute", o("code", "open('out', 'w').write('text'); print('said')", "outputs", []string{"out"}), 200, "trace_id"},
		{get, "/v1/executions?limit=1", nil, 200, ""}, {get, "/v1/executions/{trace_id}", nil, 200, ""},
		{get, "/v1/executions/{trace_id}/output", nil, 200, ""}, {get, "/v1/executions/{trace_id}/output?stream=stdout", nil, 200, ""},
		{get, "/v1/executions/{trace_id}/file?path=out", nil, 200, ""}, {post, "/v1/executions/{trace_id}/cancel", nil, 409, ""}, // it has ended
		{post, "/v1/admin/tenants/described/executions/{trace_id}/webhook", nil, 409, ""}, // there is none
		{post, "/v1/sandbox/execute#respond-async", o("code", "import time; time.sleep(60)"), 202, "trace_id"}, {post, "/v1/executions/{trace_id}/cancel", nil, 200, ""},
		{del, "/v1/executions/{trace_id}", nil, 204, ""},
		{get, "/v1/usage", nil, 200, ""},
		{get, "/v1/activity?limit=2", nil, 200, ""},
		{get, "/v1/approvals?status=all", nil, 200, ""}, {get, "/v1/approvals/apr_" + strings.Repeat("0", 32), nil, 404, ""}, {post, "/v1/approvals/apr_" + strings.Repeat("0", 32), map[string]any{"approve": true}, 404, ""},
		{post, "/v1/tokens", o("operations", []string{"runProgram"}, "origins", []string{"https://app.example.com"}, "max_executions", 3), 201, "id"}, {get, "/v1/tokens", nil, 200, ""}, {del, "/v1/tokens/{id}", nil, 204, ""},

		{put, "/v1/threads/talk/files/a/b", []byte("text"), 200, ""}, {get, "/v1/threads/talk/files/a/b", nil, 200, ""}, {get, "/v1/threads", nil, 200, ""},
		{get, "/v1/threads/talk", nil, 200, ""}, {get, "/v1/threads/talk/files", nil, 200, ""}, {patch, "/v1/threads/talk", o("expires_at", "2031-06-30T00:00:00Z"), 200, ""},
		{post, "/v1/files/list", o("source", "thread", "id", "talk"), 200, ""}, {post, "/v1/threads/talk/signed_urls", o("path", "a/b"), 200, ""},
		{post, "/v1/files/upload_url", o("source", "thread", "id", "talk", "path", "a/b", "content_length", 4), 200, ""},
		{post, "/v1/files/download_url", o("source", "thread", "id", "talk", "path", "a/b"), 200, ""},
		{post, "/v1/files/upload_url", o("source", "thread", "id", "talk", "path", "a/b", "content_length", 4), 200, ""}, {post, "/v1/files/download_url", o("source", "thread", "id", "talk", "path", "a/b"), 200, ""},
		{get, "/v1/threads/talk/archive", nil, 200, ""}, {put, "/v1/threads/talk/archive", archive, 200, ""},
		{del, "/v1/threads/talk/files/file", nil, 204, ""}, {del, "/v1/threads/talk", nil, 204, ""},

		{post, "/v1/sandboxes", o("name", "dev"), 201, "sandbox_id"},
	}
	steps = append(steps, sandboxSteps(t)...)
	steps = append(steps, []step{
		{get, "/v1/tools", nil, 200, ""}, {put, "/v1/admin/tenants/described/templates/support", o("sandbox", o("environment", "internal-only")), 200, ""},
		{post, "/v1/tools/execute_code", o("code", "print(1)", "agent", "a", "turn", "t", "template", "support"), 200, ""}, {del, "/v1/tools/turns/t?agent=a", nil, 204, ""},
		{post, tools + "shell", o("command", "echo text", "sandbox", "dev"), 200, ""}, {post, tools + "write_file", o("path", "f", "content", "text", "sandbox", "dev"), 200, ""},
		{post, tools + "read_file", o("path", "f", "sandbox", "dev"), 200, ""}, {post, tools + "glob", o("pattern", "*", "sandbox", "dev"), 200, ""},
		{post, tools + "execute_code", o("code", "1 + 1"), 200, ""}, {post, tools + "browse", o("port", 8000, "sandbox", "dev"), 200, ""},
		{post, tools + "sandbox_list", o(), 200, ""}, {post, tools + "sandbox_create", o("sandbox", "test"), 200, ""},
		{post, tools + "transfer", o("from_sandbox", "dev", "from_path", "f", "to_sandbox", "test", "to_path", "f"), 200, ""},
		{post, "/mcp", ping, 200, ""}, {get, "/mcp", nil, 200, ""}, {del, "/mcp", nil, 204, ""},
		{post, "/v1/search", o("query", "atolls"), 200, ""}, {post, "/search", o("query", []string{"atolls", "reefs"}, "search_type", "people"), 200, ""},
		{post, "/v1/fetch", o("url", searches.URL+"/page"), 200, ""},
		{del, one, nil, 204, ""},
	}...)
	offline := o("permissions", o("network", o("enabled", false)))
	for _, base := range []string{"/v1/environments", "/default/v1/environments"} {
		steps = append(steps, step{post, base, o("name", "own", "config", offline), 201, ""}, step{get, base, nil, 200, ""}, step{get, base + "/own", nil, 200, ""},
			step{patch, base + "/own", o("config", offline), 200, ""}, step{del, base + "/own", nil, 204, ""})
	}
	for i, base := range []string{"/v1/agents", "/default/v1/agents"} {
		slug := []string{"support", "sales"}[i]
		one := base + "/" + slug
		steps = append(steps, step{post, base, o("name", "Support", "slug", slug, "model", o("name", "declared"), "tools", []any{o("type", "mcp", "server", "web-search")}), 201, ""},
			step{get, base, nil, 200, ""}, step{get, one, nil, 200, ""}, step{patch, one, o("version", 1, "system", "Be kind."), 200, ""},
			step{get, one + "/versions", nil, 200, ""}, step{get, one + "/versions/1", nil, 200, ""}, step{post, one + "/copy", o("slug", slug+"-copy"), 201, ""}, step{post, one + "/archive", nil, 200, ""}, step{del, one + "-copy", nil, 200, ""})
		sessions := []string{"/v1/sessions", "/default/v1/sessions"}[i]
		talk := sessions + "/{id}"
		steps = append(steps, step{post, base, o("name", "Talker", "slug", "talker-"+slug, "model", o("name", "declared")), 201, ""},
			step{post, sessions, o("agent_id", "talker-"+slug), 201, "id"}, step{get, sessions, nil, 200, ""}, step{get, talk, nil, 200, ""}, step{patch, talk, o("title", "A return"), 200, ""},
			step{get, talk + "/events", nil, 200, ""}, step{get, talk + "/context", nil, 200, ""}, step{post, talk + "/interrupt", nil, 200, ""}, step{post, talk + "/archive", nil, 200, ""},
			step{get, talk + "/events/stream", nil, 200, ""}, step{post, talk + "/events", o("type", "message", "content", "too late"), 409, ""}, step{del, talk, nil, 204, ""})
	}
	skills, skill := "/v1/skills", "/v1/skills/report"
	steps = append(steps, step{post, skills, form(t, "SKILL.md", skillText), 201, ""}, step{get, skills, nil, 200, ""}, step{get, skill, nil, 200, ""},
		step{post, skill + "/versions", form(t, "SKILL.md", skillText), 201, ""}, step{get, skill + "/versions", nil, 200, ""}, step{get, skill + "/versions/latest", nil, 200, ""},
		step{get, skill + "/versions/1/content", nil, 200, ""}, step{del, skill + "/versions/1", nil, 200, ""}, step{post, skill + "/archive", nil, 200, ""}, step{del, skill, nil, 200, ""})
	vaults, vault, token := "/v1/vaults", "/v1/vaults/{vault_id}", o("type", "static_bearer", "mcp_server_url", "https://mcp.example.com", "token", "long-enough")
	credential := vault + "/credentials/{data.id}"
	steps = append(steps, step{post, vaults, o("display_name", "of a user"), 201, "id"}, step{get, vaults, nil, 200, ""}, step{post, vaults + "/{id}/credentials", o("auth", token), 201, "vault_id"},
		step{get, vault, nil, 200, ""}, step{patch, vault, o("metadata", o("a", "b")), 200, ""}, step{get, vault + "/credentials", nil, 200, "data.id"}, step{get, credential, nil, 200, ""},
		step{patch, credential, o("auth", o("type", "static_bearer", "token", "longer-enough")), 200, ""}, step{post, credential + "/archive", nil, 200, ""}, step{del, credential, nil, 200, ""},
		step{post, vault + "/archive", nil, 200, ""}, step{del, vault, nil, 200, ""})
	steps = append(steps, step{post, "/v1/files", form(t, "data.csv", "a,b\n"), 200, "id"}, step{get, "/v1/files", nil, 200, ""}, step{get, "/v1/files/{id}", nil, 200, ""},
		step{get, "/v1/files/{id}/content", nil, 200, ""}, step{del, "/v1/files/{id}", nil, 200, ""})
	steps = append(steps, []step{
		{get, "/v1/admin/audit/trails", nil, 200, ""}, {get, "/v1/admin/caps", nil, 200, ""}, {patch, "/v1/admin/caps", o("tenant_daily", 10_000), 200, ""},
		{put, "/v1/admin/plans/made", o("concurrency", 2), 200, ""}, {get, "/v1/admin/plans", nil, 200, ""}, {get, "/v1/admin/plans/made", nil, 200, ""}, {del, "/v1/admin/plans/made", nil, 204, ""},
		{post, "/v1/admin/models", o("name", "made", "provider", "openai-chat", "base_url", "http://127.0.0.1:9/v1"), 201, ""}, {get, "/v1/admin/models", nil, 200, ""},
		{get, "/v1/admin/models/made", nil, 200, ""}, {patch, "/v1/admin/models/made", o("upstream", "other"), 200, ""}, {post, "/v1/admin/models/made/test", o(), 200, ""}, // nothing listens there
		{post, "/v1/admin/models", o("name", "sharing", "provider", "openai", "base_url", planner(t).URL+"/v1"), 201, ""},
		{get, "/v1/models", nil, 200, ""}, {get, "/v1/models/made", nil, 200, ""},
		{get, "/v1/models/declared", nil, 200, ""}, {patch, "/v1/admin/models/declared", o("upstream", "other"), 409, ""},
		{put, "/v1/model-keys/declared", o("key", "sk-own"), 200, ""}, {get, "/v1/model-keys", nil, 200, ""}, {del, "/v1/model-keys/declared", nil, 204, ""},
	}...)
	shares := plan(t, toolStep{"write_file", o("file_path", "made.txt", "content", "text")}, toolStep{"share_file", o("file_path", "made.txt")})
	shares["model"] = "sharing"
	for _, base := range []string{"/v1/responses", "/v1/agent"} {
		one := base + "/{id}"
		steps = append(steps, step{post, base, o("model", "made", "input", "text", "background", true), 200, "id"}, step{get, one, nil, 200, ""},
			step{get, one + "/input_items", nil, 200, ""}, step{post, one + "/cancel", nil, 200, ""}, step{del, one, nil, 200, ""},
			step{post, base, shares, 200, "id"}, step{get, one + "/files", nil, 200, "data.id"}, step{get, one + "/files/{data.id}/content", nil, 200, ""})
	}
	for _, base := range []string{"/v1", "/default/v1"} {
		slug, talk := "sharer-"+strings.Trim(strings.ReplaceAll(base, "/", "-"), "-"), base+"/sessions/{id}"
		steps = append(steps, step{post, base + "/agents", o("name", "Sharer", "slug", slug, "model", o("name", "sharing"), "tools", shares["tools"]), 201, ""},
			step{post, base + "/sessions", o("agent_id", slug), 201, "id"}, step{post, talk + "/events", o("type", "message", "content", shares["input"], "files", o("in.txt", "text")), 200, ""},
			step{get, talk + "/files", nil, 200, "data.id"}, step{get, talk + "/files/{data.id}/content", nil, 200, ""}, step{get, talk + "/events", nil, 200, ""}, step{del, talk, nil, 204, ""})
		handed := plan(t, toolStep{"handoff_to_sharer", o("task", plan(t, toolStep{"write_file", o("file_path", "made.txt", "content", "text")})["input"])})
		steps = append(steps, step{post, base + "/agents", o("name", "Boss", "slug", "boss-"+slug, "model", o("name", "sharing"), "handoffs", []any{o("agent_id", slug)}, "multiagent", o("context_sharing", "full")), 201, ""},
			step{post, base + "/sessions", o("agent_id", "boss-"+slug), 201, "id"}, step{post, talk + "/events", o("type", "message", "content", handed["input"]), 200, ""},
			step{get, talk + "/threads", nil, 200, "data.id"}, step{get, talk + "/threads/{data.id}", nil, 200, ""}, step{get, talk + "/threads/{data.id}/events", nil, 200, ""}, step{get, talk + "/threads/{data.id}/events/stream", nil, 200, ""}, step{del, talk, nil, 204, ""})
	}
	const container, file = "/v1/containers/{id}", "/v1/containers/{id}/files/{data.id}"
	steps = append(steps, step{post, "/v1/containers", o("name", "made"), 200, "id"}, step{get, "/v1/containers", nil, 200, ""}, step{get, container, nil, 200, ""},
		step{post, container + "/files", form(t, "file", "text"), 200, ""}, step{get, container + "/files", nil, 200, "data.id"},
		step{get, file, nil, 200, ""}, step{get, file + "/content", nil, 200, ""}, step{del, file, nil, 200, ""}, step{del, container, nil, 200, ""})
	steps = append(steps, []step{
		{del, "/v1/admin/models/made", nil, 204, ""},
		{get, "/v1/admin/sandboxes/orphans", nil, 200, ""}, {del, "/v1/admin/sandboxes/orphans", nil, 200, ""},
		{post, "/v1/admin/tenants", o("name", "made"), 201, ""}, {get, "/v1/admin/tenants", nil, 200, ""}, {get, tenant, nil, 200, ""}, {patch, tenant, o("network_enabled", true), 200, ""},
		{post, tenant + "/environments", o("name", "main"), 201, ""}, {get, tenant + "/environments", nil, 200, ""}, {get, tenant + "/environments/main", nil, 200, ""},
		{patch, tenant + "/environments/main", o("limits", o("cpu", 1)), 200, ""},
		{post, tenant + "/keys", o("name", "main", "environment", "main"), 201, ""}, {get, tenant + "/keys", nil, 200, ""}, {get, tenant + "/keys/main", nil, 200, ""},
		{patch, tenant + "/keys/main", o("expires_at", "2040-01-31T12:00:00Z"), 200, ""}, {del, tenant + "/keys/main", nil, 200, ""},
		{put, tenant + "/templates/made", o("sandbox", o("environment", "internal-only")), 200, ""}, {get, tenant + "/templates", nil, 200, ""}, {get, tenant + "/templates/made", nil, 200, ""}, {del, tenant + "/templates/made", nil, 204, ""},
		{post, tenant + "/connections", o("slug", "team", "kind", "volume"), 201, ""}, {get, tenant + "/connections", nil, 200, ""}, {get, tenant + "/connections/team", nil, 200, ""},
		{patch, tenant + "/connections/team", o("read_only", true), 200, ""}, {post, tenant + "/connections/team/grants", o("environment", "main"), 201, "id"},
		{get, tenant + "/connections/team/grants", nil, 200, ""}, {del, tenant + "/connections/team/grants/{id}", nil, 204, ""}, {del, tenant + "/connections/team", nil, 204, ""},
		{del, tenant + "/environments/main", nil, 204, ""},
		{put, tenant + "/model-keys/declared", o("key", "sk-own"), 200, ""}, {get, tenant + "/model-keys", nil, 200, ""}, {del, tenant + "/model-keys/declared", nil, 204, ""},
		{get, tenant + "/policy-events", nil, 200, ""}, {get, tenant + "/usage", nil, 200, ""}, {get, tenant + "/activity", nil, 200, ""}, {del, tenant, nil, 202, ""},
		{get, "/v1/admin/tenants/described/audit", nil, 200, ""}, {get, "/v1/admin/tenants/described/audit/export", nil, 200, ""}, {post, "/v1/admin/tenants/described/audit/verify", nil, 200, ""},
	}...)
	client := &http.Client{Transport: openapitest.Transport{Base: &http.Transport{}}}
	defer client.CloseIdleConnections()
	for _, s := range steps {
		d.take(t, client, s)
	}
	for _, op := range openapitest.Operations() {
		if len(openapitest.Called(op.ID)) == 0 {
			t.Errorf("no test calls %s (%s %s)", op.ID, op.Method, op.Path)
		}
	}
}

// take makes one call and notes what it saves.
func (d *described) take(t *testing.T, client *http.Client, s step) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	path, preferred, _ := strings.Cut(s.path, "#")
	s.path = path
	for word, value := range d.saved {
		s.path = strings.ReplaceAll(s.path, "{"+word+"}", value)
	}
	if s.status == http.StatusSwitchingProtocols {
		conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(d.URL, "http")+s.path, &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			t.Fatalf("%s: %v", s.path, err)
		}
		_ = conn.CloseNow()
		return
	}
	media, body := "", []byte(nil)
	switch b := s.body.(type) {
	case nil:
	case multipartForm:
		body, media = b.body, b.media
	case []byte:
		if body, media = b, "application/octet-stream"; strings.Contains(s.path, "/archive") {
			media = "application/x-tar"
		}
	default:
		var err error
		if body, err = json.Marshal(b); err != nil {
			t.Fatal(err)
		}
		media = "application/json"
	}
	r, err := http.NewRequestWithContext(ctx, s.method, d.URL+s.path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	key := d.key
	if strings.HasPrefix(s.path, "/v1/admin/") {
		key = d.admin
	}
	r.Header.Set("Authorization", "Bearer "+key)
	if preferred != "" {
		r.Header.Set("Prefer", preferred)
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	if s.path == "/mcp" {
		r.Header.Set("Accept", "text/event-stream")
		if s.method == http.MethodPost {
			r.Header.Set("Accept", "application/json, text/event-stream")
		}
		if id := d.saved["Mcp-Session-Id"]; id != "" {
			r.Header.Set("Mcp-Session-Id", id)
		}
	}
	res, err := client.Do(r)
	if err != nil {
		t.Errorf("%s %s: %v", s.method, s.path, err)
		return
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		d.saved["Mcp-Session-Id"] = id
	}
	var text []byte
	if endless := s.method == http.MethodGet && (s.path == "/mcp" || strings.HasSuffix(s.path, "/watch")); !endless {
		text, err = io.ReadAll(res.Body)
	}
	if err != nil || res.StatusCode != s.status {
		t.Errorf("%s %s: %d, want %d, %v: %.500s", s.method, s.path, res.StatusCode, s.status, err, text)
	}
	if s.save != "" {
		var all map[string]any
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatalf("%s %s: %v", s.method, s.path, err)
		}
		member, listed := strings.CutPrefix(s.save, "data.")
		if data, ok := all["data"].([]any); listed && ok && len(data) > 0 {
			all, _ = data[0].(map[string]any)
		}
		if d.saved[s.save], _ = all[member].(string); s.save == "trace_id" {
			d.saved[s.save] = res.Header.Get("X-Trace-Id")
		}
	}
}

// multipartForm is a body that has a file.
type multipartForm struct {
	media string
	body  []byte
}

func form(t *testing.T, name, text string) multipartForm {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = io.WriteString(part, text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return multipartForm{w.FormDataContentType(), out.Bytes()}
}

// tarOf is an archive of one file.
func tarOf(t *testing.T, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// skillText is a skill that is one file.
const skillText = "---\nname: report\ndescription: Writes reports.\n---\nWrite a report.\n"
