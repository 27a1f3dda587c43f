package admin_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/admin"
	"github.com/atoll-run/atoll/internal/edge/httpapi/execute"
	"github.com/atoll-run/atoll/test/httpapitest"
)

func TestAdministration(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	acme := s.Must(201, "POST", "/v1/admin/tenants", `{"name":"acme","plan":"pro","monthly_credits":50,"caps":{"tenant_daily":7},"redaction_off":null}`)
	if caps := acme["caps"].(map[string]any); caps["tenant_daily"] != 7.0 || caps["agent_hourly"] != nil || acme["plan"] != "pro" || acme["disabled_at"] != nil || acme["audit_days"] != 30.0 {
		t.Errorf("got %v", acme)
	}
	id := acme["id"].(string)
	env := s.Must(201, "POST", "/v1/admin/tenants/acme/environments", `{"name":"e","limits":{"cpu":2},"env_vars":{"A":"1"},"secrets":{"TOKEN":"correct horse"}}`)
	if env["secrets"].([]any)[0] != "TOKEN" || env["limits"].(map[string]any)["cpu"] != 2.0 || env["tenant"] != id {
		t.Errorf("got %v", env)
	}
	key := s.Must(201, "POST", "/v1/admin/tenants/"+id+"/keys", `{"name":"k","environment":"e","webhook_url":"https://127.0.0.1/hook","webhook_secret":"0123456789abcdef","expires_in":3600}`)
	token := key["key"].(string)
	if !strings.HasPrefix(token, "sk-atoll-") || key["environment"] != env["id"] || key["webhook_signed"] != true || key["expires_at"] == nil {
		t.Errorf("got %v", key)
	}
	run := func(want int) *httptest.ResponseRecorder {
		t.Helper()
		w := httpapitest.Ask(s, "POST", "/v1/sandbox/execute", `{"code":"env A TOKEN","metadata":{"order":"4711"}}`, "Authorization", "Bearer "+token)
		if w.Code != want {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		return w
	}
	run(200)

	// Nothing shows the key or a secret again.
	for _, path := range []string{"", "/environments", "/environments/e", "/keys", "/keys/k", "/policy-events", "/audit", "/usage"} {
		w := s.Admin("GET", "/v1/admin/tenants/acme"+path, "")
		for _, secret := range []string{token, "correct horse", "0123456789abcdef"} {
			if w.Code != 200 || strings.Contains(strings.ReplaceAll(w.Body.String(), id, ""), secret) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	}

	for _, path := range []string{"/v1/admin/tenants/acme/environments/e", "/v1/admin/tenants/acme/keys/k"} {
		bound := s.Must(200, "PATCH", path, `{"secrets":{"TOKEN":"correct horse"},"secret_hosts":{"TOKEN":["api.example.com","*.example.net"]}}`)
		if hosts := fmt.Sprint(bound["secret_hosts"]); hosts != "map[TOKEN:[api.example.com *.example.net]]" {
			t.Errorf("%s is bound to %s", path, hosts)
		}
		if free := s.Must(200, "PATCH", path, `{"secret_hosts":{"TOKEN":[]}}`); len(free["secret_hosts"].(map[string]any)) != 0 {
			t.Errorf("%s: %v", path, free)
		}
	}
	s.Must(200, "PATCH", "/v1/admin/tenants/acme/environments/e", `{"unset":["TOKEN"],"env_vars":{"B":"2"}}`)
	if env = s.Must(200, "GET", "/v1/admin/tenants/acme/environments/e", ""); len(env["secrets"].([]any)) != 0 || len(env["env_vars"].(map[string]any)) != 2 {
		t.Errorf("got %v", env)
	}
	s.Must(409, "DELETE", "/v1/admin/tenants/acme/environments/e", "")
	s.Must(200, "PATCH", "/v1/admin/tenants/acme/keys/k", `{"expires_at":"never","scopes":["read"],"webhook_url":""}`)
	if k := s.Must(200, "GET", "/v1/admin/tenants/acme/keys/k", ""); k["expires_at"] != nil || k["webhook_url"] != nil || k["key"] != nil {
		t.Errorf("got %v", k)
	}
	run(403)
	if k := s.Must(200, "DELETE", "/v1/admin/tenants/acme/keys/k", ""); k["revoked_at"] == nil {
		t.Errorf("got %v", k)
	}
	run(401)
	s.Must(204, "DELETE", "/v1/admin/tenants/acme/environments/e", "")
	s.Must(404, "GET", "/v1/admin/tenants/acme/environments/e", "")

	if plan := s.Must(200, "PUT", "/v1/admin/plans/team", `{"max_timeout":120,"max_cpu":1.5,"streaming":true}`); plan["max_output"] != 104857600.0 || plan["max_timeout"] != 120.0 || plan["built_in"] != false {
		t.Errorf("got %v", plan)
	}
	s.Must(409, "PUT", "/v1/admin/plans/free", `{}`)
	s.Must(204, "DELETE", "/v1/admin/plans/team", "")
	if caps := s.Must(200, "PATCH", "/v1/admin/caps", `{"agent_hourly":0}`); caps["agent_hourly"] != 0.0 || caps["tenant_daily"] != 1000.0 {
		t.Errorf("got %v", caps)
	}
	s.Must(200, "PATCH", "/v1/admin/caps", `{"tenant_daily":1000}`) // as it is: nothing to note
	noted := s.Must(200, "GET", "/v1/admin/tenants/operator/policy-events?limit=100", "")["data"].([]any)
	if last, ok := noted[len(noted)-1].(map[string]any); !ok || last["field"] != "caps.agent_hourly" || last["old"] != "100" || last["new"] != "0" || !strings.HasPrefix(fmt.Sprint(last["actor"]), "key_") {
		t.Errorf("noted %v", noted)
	}
	if caps := s.Must(200, "GET", "/v1/admin/caps", ""); caps["agent_hourly"] != 0.0 {
		t.Errorf("got %v", caps)
	}
	if tpl := s.Must(200, "PUT", "/v1/admin/tenants/acme/templates/support", `{"sandbox":{"environment":"internal-only"}}`); tpl["sandbox"].(map[string]any)["environment"] != "internal-only" {
		t.Errorf("got %v", tpl)
	}
	if tpl := s.Must(200, "PUT", "/v1/admin/tenants/acme/templates/support", `{"sandbox":null}`); tpl["sandbox"] != nil {
		t.Errorf("got %v", tpl)
	}
	s.Must(204, "DELETE", "/v1/admin/tenants/acme/templates/support", "")
	s.Must(200, "PATCH", "/v1/admin/tenants/acme", `{"tier":"regulated"}`)
	s.Must(409, "PATCH", "/v1/admin/tenants/acme", `{"sandbox_enabled":true}`)
	events := s.Must(200, "GET", "/v1/admin/tenants/acme/policy-events", "")["data"].([]any)
	for _, want := range []map[string]any{
		{"field": "environment/e", "old": "", "new": "default"}, {"field": "environment/e", "old": "default", "new": ""},
		{"field": "key/k", "old": "", "new": "execute,read,sandboxes,tools"}, {"field": "key/k", "old": "read", "new": "revoked"},
	} {
		if !slices.ContainsFunc(events, func(e any) bool {
			got := e.(map[string]any)
			return got["field"] == want["field"] && got["old"] == want["old"] && got["new"] == want["new"] && strings.HasPrefix(got["actor"].(string), "key_")
		}) {
			t.Errorf("no event %v", want)
		}
	}
	if last := events[len(events)-1].(map[string]any); len(events) != 22 || last["field"] != "sandbox_enabled" || !strings.HasPrefix(last["actor"].(string), "key_") {
		t.Errorf("got %v", events)
	}
	usage := s.Must(200, "GET", "/v1/admin/tenants/acme/usage", "")
	if usage["totals"].(map[string]any)["calls"] != 1.0 || usage["month"].(map[string]any)["budget"] != 50.0 {
		t.Errorf("got %v", usage)
	}
}

var part = regexp.MustCompile(`\{[a-z_]+\}`)

// Every operation wants a key that administers, and nothing it does not know.
func TestEveryAdminOperationIsGuarded(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	for _, op := range (&admin.Handlers{}).Operations() {
		path := part.ReplaceAllString(op.Path, "nothing")
		body := ""
		if op.Body != nil {
			body = `{}`
		}
		for _, c := range []struct {
			authorization string
			status        int
		}{{"", 401}, {"Bearer sk-atoll-unknown", 401}, {"Bearer " + httpapitest.Key, 403}} {
			if w := httpapitest.Ask(s, op.Method, path, body, "Authorization", c.authorization, "Content-Type", "application/json"); w.Code != c.status {
				t.Errorf("%s %s with %q: %d %s", op.Method, path, c.authorization, w.Code, w.Body)
			}
		}
		if w := s.Admin(op.Method, path+"?no_such=1", body); w.Code != 400 || !strings.Contains(w.Body.String(), `unknown query parameter \"no_such\"`) {
			t.Errorf("%s %s: %d %s", op.Method, path, w.Code, w.Body)
		}
		if w := s.Admin("TRACE", path, ""); w.Code != 405 || !strings.Contains(w.Header().Get("Allow"), op.Method) {
			t.Errorf("TRACE %s: %d %s", path, w.Code, w.Body)
		}
		if strings.Contains(op.Path, "{") && op.Method != "PUT" {
			if w := s.Admin(op.Method, part.ReplaceAllString(op.Path, "%00"), body); w.Code != 404 && w.Code != 400 {
				t.Errorf("%s %s: %d %s", op.Method, op.Path, w.Code, w.Body)
			}
			if w := s.Admin(op.Method, path, body); w.Code != 404 && w.Code != 400 {
				t.Errorf("%s %s: %d %s", op.Method, path, w.Code, w.Body)
			}
		}
		if op.Body != nil {
			for body, says := range map[string]string{
				`{"no_such":1}`: "unknown field", `{`: "not valid JSON", `[]`: "must be a JSON object", ` `: "empty", `{} {}`: "not valid JSON",
			} {
				if w := s.Admin(op.Method, path, body); w.Code != 400 && w.Code != 404 || w.Code == 400 && !strings.Contains(w.Body.String(), says) {
					t.Errorf("%s %s %s: %d %s", op.Method, path, body, w.Code, w.Body)
				}
			}
			if w := httpapitest.Ask(s, op.Method, path, body, "Authorization", "Bearer "+s.AdminKey, "Content-Type", "text/plain"); w.Code != 415 && w.Code != 404 {
				t.Errorf("%s %s as text: %d %s", op.Method, path, w.Code, w.Body)
			}
		}
	}
}

func TestAdminRefusals(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	s.Must(201, "POST", "/v1/admin/tenants", `{"name":"acme"}`)
	s.Must(201, "POST", "/v1/admin/tenants/acme/environments", `{"name":"e"}`)
	s.Must(201, "POST", "/v1/admin/tenants/acme/keys", `{"name":"k","environment":"e"}`)
	const acme = "/v1/admin/tenants/acme"
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/v1/admin/tenants", `{}`, 400, "name is required"},
		{"POST", "/v1/admin/tenants", "", 400, "name is required"},
		{"POST", "/v1/admin/tenants", " ", 400, "the request body is empty"},
		{"POST", "/v1/admin/tenants", `{"name":null}`, 400, "name is required"},
		{"POST", "/v1/admin/tenants", `{"name":"a","name":"b"}`, 400, "duplicate field"},
		{"POST", "/v1/admin/tenants", `{"name":7}`, 400, "name must be a string"},
		{"POST", "/v1/admin/tenants", `{"name":"a\u0000b"}`, 400, "tenant name"},
		{"POST", "/v1/admin/tenants", `{"name":"acme"}`, 409, ""},
		{"PATCH", acme, `{"name":"b"}`, 400, "unknown field"},
		{"PATCH", acme, `{"audit_days":30.5}`, 400, "audit_days must be an integer"},
		{"PATCH", acme, `{"audit_days":181}`, 400, "audit_days must be 1 to 180"},
		{"PATCH", acme, `{"audit_days":99999999999999999999}`, 400, "audit_days must be"},
		{"PATCH", acme, `{"monthly_credits":-1}`, 400, "monthly_credits"},
		{"PATCH", acme, `{"sandbox_enabled":"yes"}`, 400, "sandbox_enabled must be true or false"},
		{"PATCH", acme, `{"caps":{"tenant_daily":-1}}`, 400, "caps.tenant_daily"},
		{"PATCH", acme, `{"caps":{"daily":1}}`, 400, "unknown field"},
		{"PATCH", acme, `{"caps":{"tenant_daily":"5"}}`, 400, "caps.tenant_daily must be an integer"},
		{"PATCH", acme, `{"plan":"gold"}`, 400, "plan"},
		{"PATCH", acme, `{"redaction_off":[null]}`, 400, "redaction_off"},
		{"POST", acme + "/environments", `{"name":"x","limits":{"cpu":2}}`, 429, "exceeds the free plan's maximum"},
		{"POST", acme + "/environments", `{"name":"x","limits":{"cpu":1e400}}`, 400, "limits.cpu must be a number"},
		{"POST", acme + "/environments", `{"name":"x","limits":{"cores":1}}`, 400, "unknown field"},
		{"POST", acme + "/environments", `{"name":"x","env_vars":{"A":null}}`, 400, "env_vars must be"},
		{"POST", acme + "/environments", `{"name":"x","secrets":{"A":"short"}}`, 400, "at least 8"},
		{"POST", acme + "/environments", `{"name":"x","secret_hosts":{"A":["a.test"]}}`, 400, `secret \"A\" not found`},
		{"POST", acme + "/environments", `{"name":"x","secret_hosts":{"A":"a.test"}}`, 400, "secret_hosts must be an object whose values are arrays of strings"},
		{"POST", acme + "/keys", `{"name":"x","environment":"e","secrets":{"A":"12345678"},"secret_hosts":{"A":["*"]}}`, 400, "to any host"},
		{"POST", acme + "/environments", `{"name":"x","image":"../x"}`, 400, "image"},
		{"POST", acme + "/environments", `{"name":"x","unset":[null]}`, 400, "unset must be"},
		{"PATCH", acme + "/environments/e", `{"name":"a b"}`, 400, "environment name"},
		{"POST", acme + "/keys", `{"name":"x","environment":"a b"}`, 400, "environment: not found in this tenant"},
		{"POST", acme + "/keys", `{"name":"x"}`, 400, "environment is required"},
		{"POST", acme + "/keys", `{"name":"x","environment":"e","scopes":["admin"]}`, 400, "operator"},
		{"POST", acme + "/keys", `{"name":"x","environment":"e","expires_in":0}`, 400, "expires_in must be 1"},
		{"POST", acme + "/keys", `{"name":"x","environment":"e","expires_in":3153600001}`, 400, "expires_in must be 1"},
		{"POST", acme + "/keys", `{"name":"x","environment":"e","expires_in":5,"expires_at":"never"}`, 400, "give one of them"},
		{"POST", acme + "/keys", `{"name":"x","environment":"e","expires_at":"tomorrow"}`, 400, "expires_at must be a time"},
		{"POST", acme + "/keys", `{"name":"x","environment":"e","expires_at":"2020-01-01T00:00:00Z"}`, 400, "in the future"},
		{"POST", acme + "/keys", `{"name":"x","environment":"e","webhook_url":"https://10.0.0.1/"}`, 400, "webhook_url"},
		{"PATCH", acme + "/keys/k", `{"environment":"e"}`, 400, "unknown field"},
		{"PATCH", acme + "/keys/k", `{"scopes":[]}`, 400, "scopes"},
		{"PATCH", acme + "/keys/k", `{"scopes":"read"}`, 400, "scopes must be an array of strings"},
		{"PUT", acme + "/templates/t", `{"sandbox":{}}`, 400, "sandbox.environment is required"},
		{"PUT", acme + "/templates/t", `{"sandbox":{"environment":"public"}}`, 400, "sandbox.environment must be one of"},
		{"PUT", acme + "/templates/t", `{"sandbox":true}`, 400, "sandbox must be"},
		{"PUT", acme + "/templates/-t", `{}`, 404, ""},
		{"PUT", "/v1/admin/plans/p", `{"max_timeout":-1}`, 400, "max_timeout"},
		{"PUT", "/v1/admin/plans/p", `{"max_timeout":9223372036854775807}`, 400, "max_timeout"},
		{"PUT", "/v1/admin/plans/p", `{"max_output":1}`, 400, "max_output"},
		{"PATCH", "/v1/admin/caps", `{"tenant_daily":-1}`, 400, "tenant_daily must be between 0"},
		{"PATCH", "/v1/admin/caps", `{"agent_hourly":1000000001}`, 400, "agent_hourly must be between 0"},
		{"GET", acme + "/audit?exit_status=fine", "", 400, "exit_status must be one of"},
		{"GET", acme + "/audit?executed_code_hash=xyz", "", 400, "64 hexadecimal"},
		{"GET", acme + "/audit?source=A%2FB", "", 400, "source must be one that rows have"},
		{"GET", acme + "/audit?key=unknown", "", 400, "key: not found in this tenant"},
		{"GET", acme + "/audit?limit=1001", "", 400, "limit must be"},
		{"GET", acme + "/audit?page=zzz", "", 400, ""},
		{"GET", acme + "/audit?agent=a&agent=b", "", 400, "once"},
		{"GET", acme + "/audit?agent=a%0ab", "", 400, "control characters"},
		{"GET", acme + "/audit?agent=" + strings.Repeat("a", 513), "", 400, "512 characters"},
		{"GET", acme + "/audit?metadata.a=%00", "", 400, "NUL"},
		{"GET", acme + "/audit?since=yesterday", "", 400, "since must be a time"},
		{"GET", acme + "/audit/export?since=2026-01-02T00:00:00Z&before=2026-01-01T00:00:00Z", "", 400, "since must be earlier than before"},
		{"GET", acme + "/usage?since=2020-01-01T00:00:00Z", "", 400, "days"},
		{"GET", "/v1/admin/tenants?limit=0", "", 400, "limit must be"},
		{"GET", "/v1/admin/tenants?page=" + strings.Repeat("A", 400), "", 400, "page must be"},
		{"POST", acme + "/audit/verify", `{"known":{"number":1,"hash":"00"}}`, 400, "known must be"},
		{"POST", acme + "/audit/verify", `{"known":{"number":0,"hash":"` + strings.Repeat("0", 64) + `"}}`, 400, "known must be"},
		{"POST", acme + "/executions/trc_1/webhook", "", 404, `execution \"trc_1\" not found`},
	} {
		w := s.Admin(c.method, c.path, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s %s: got %d %s, want %d %q", c.method, c.path, c.body, w.Code, w.Body, c.status, c.says)
		}
		httpapitest.CheckCommon(t, w.Result())
	}
}

// TestNoBodyIsAnEmptyOne asks without a body, and so without saying what it is,
// wherever every field may be omitted.
func TestNoBodyIsAnEmptyOne(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	s.Must(201, "POST", "/v1/admin/tenants", `{"name":"acme","plan":"pro"}`)
	s.Must(201, "POST", "/v1/admin/tenants/acme/environments", `{"name":"e"}`)
	s.Must(201, "POST", "/v1/admin/tenants/acme/keys", `{"name":"k","environment":"e"}`)
	s.Must(201, "POST", "/v1/admin/tenants/acme/connections", `{"slug":"c","kind":"volume"}`)
	s.Must(201, "POST", "/v1/admin/models", `{"name":"m","provider":"openai-chat","base_url":"http://127.0.0.1:1"}`)
	names := strings.NewReplacer("{tenant}", "acme", "{connection}", "c", "{environment}", "e", "{key}", "k", "{template}", "t", "{plan}", "p", "{model}", "m")
	tried := 0
	for _, op := range (&admin.Handlers{}).Operations() {
		if op.Body == nil || op.Answers[0].Status == http.StatusCreated || op.ID == "putTenantModelKey" { // whose key is required
			continue
		}
		tried++
		path := names.Replace(op.Path)
		if w := httpapitest.Ask(s, op.Method, path, "", "Authorization", "Bearer "+s.AdminKey, "Content-Type", ""); w.Code != op.Answers[0].Status {
			t.Errorf("%s %s: %d %s", op.Method, path, w.Code, w.Body)
		}
		if w := httpapitest.Ask(s, op.Method, path, "{}", "Authorization", "Bearer "+s.AdminKey, "Content-Type", ""); w.Code != 415 {
			t.Errorf("%s %s with a body of no type: %d %s", op.Method, path, w.Code, w.Body)
		}
	}
	if tried != 10 {
		t.Errorf("%d operations need no field", tried)
	}
	if got := s.Must(200, "GET", "/v1/admin/tenants/acme", "")["plan"]; got != "pro" {
		t.Errorf("the plan is %v", got)
	}
}

func TestAdminPages(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	for i := range 23 {
		s.Must(200, "PUT", fmt.Sprintf("/v1/admin/tenants/dev/templates/t%02d", i), `{}`)
	}
	var got []string
	path, pages := "/v1/admin/tenants/dev/templates?limit=5", 0
	for cursor := ""; ; pages++ {
		page := s.Must(200, "GET", path+cursor, "")
		for _, item := range page["data"].([]any) {
			got = append(got, item.(map[string]any)["name"].(string))
		}
		if page["next_page"] == nil {
			break
		}
		if pages == 1 { // the item that the cursor names goes
			s.Must(204, "DELETE", "/v1/admin/tenants/dev/templates/"+got[len(got)-1], "")
		}
		cursor = "&page=" + page["next_page"].(string)
	}
	seen := map[string]bool{}
	for _, name := range got {
		seen[name] = true
	}
	if len(got) != 24 || len(seen) != 24 || pages != 4 { // with the one named default
		t.Errorf("%d pages had %d of 24: %v", pages+1, len(seen), got)
	}
}

func TestAuditTrail(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	for i := range 6 {
		if w := httpapitest.Ask(s, "POST", "/v1/sandbox/execute", fmt.Sprintf(`{"code":"exit %d","metadata":{"n":"%d"}}`, i%2, i)); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	const trail = "/v1/admin/tenants/test/audit"
	count := func(query string) int {
		t.Helper()
		return len(s.Must(200, "GET", trail+query, "")["data"].([]any))
	}
	all := s.Must(200, "GET", trail, "")["data"].([]any)
	row := all[0].(map[string]any)
	if len(all) != 6 || row["exit_status"] != "error" || row["failure_reason"] == "" || row["retention_days"] != 30.0 || row["source"] != "execute" || row["metadata"].(map[string]any)["n"] != "5" {
		t.Errorf("got %v", row)
	}
	for query, want := range map[string]int{
		"?exit_status=ok": 3, "?metadata.n=3": 1, "?metadata.n=9": 0, "?key=test": 6, "?source=execute": 6, "?source=execute_code": 0, "?source=shell": 0,
		"?executed_code_hash=" + row["executed_code_hash"].(string): 3, "?trace_id=" + row["trace_id"].(string): 1,
		"?since=2020-01-01T00:00:00Z&before=" + time.Now().Add(time.Minute).UTC().Format(time.RFC3339): 6, "?before=2020-01-01T00:00:00Z": 0,
	} {
		if got := count(query); got != want {
			t.Errorf("%s: %d rows, want %d", query, got, want)
		}
	}
	pages, cursor := 0, ""
	for {
		page := s.Must(200, "GET", trail+"?limit=4"+cursor, "")
		if pages++; page["next_page"] == nil {
			break
		}
		cursor = "&page=" + page["next_page"].(string)
	}
	if pages != 2 {
		t.Errorf("%d pages", pages)
	}

	w := s.Admin("GET", trail+"/export", "")
	if w.Code != 200 || w.Header().Get("Content-Type") != httpapi.NDJSON {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	last, lines := 0.0, 0
	for in := bufio.NewScanner(w.Body); in.Scan(); lines++ {
		var row map[string]any
		if err := json.Unmarshal(in.Bytes(), &row); err != nil || row["id"].(float64) <= last {
			t.Errorf("%s: %v", in.Text(), err)
		}
		last = row["id"].(float64)
	}
	if lines != 6 {
		t.Errorf("%d lines", lines)
	}
	if w := s.Admin("GET", "/v1/admin/tenants/dev/audit/export", ""); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("an empty trail: %d %s", w.Code, w.Body)
	}

	report := s.Must(200, "POST", trail+"/verify", `{}`)
	head := report["head"].(map[string]any)
	if report["ok"] != true || report["rows"] != 6.0 || head["number"] != 1.0 {
		t.Errorf("got %v", report)
	}
	known := func(hash string) map[string]any {
		return s.Must(200, "POST", trail+"/verify", fmt.Sprintf(`{"known":{"number":1,"hash":%q}}`, hash))
	}
	if report := known(head["hash"].(string)); report["ok"] != true {
		t.Errorf("got %v", report)
	}
	if report := known(strings.Repeat("0", 64)); report["ok"] != false || report["problems"].([]any)[0].(map[string]any)["kind"] != "known" {
		t.Errorf("got %v", report)
	}
}

func TestRedeliver(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	w := httpapitest.Ask(s, "POST", "/v1/sandbox/execute", `{"code":"x","webhook_url":"https://hooks.example/1"}`, "Prefer", "respond-async")
	var accepted execute.AcceptedResponse
	if err := json.Unmarshal(w.Body.Bytes(), &accepted); err != nil || w.Code != http.StatusAccepted {
		t.Fatalf("%d %s %v", w.Code, w.Body, err)
	}
	path := "/executions/" + accepted.TraceID + "/webhook"
	s.Must(404, "POST", "/v1/admin/tenants/dev"+path, "") // not that tenant's
	if out := s.Must(202, "POST", "/v1/admin/tenants/test"+path, ""); out["webhook_delivery_status"] != "pending" || *s.Redelivered.Load() != accepted.TraceID {
		t.Errorf("got %v", out)
	}
	inline := httpapitest.Ask(s, "POST", "/v1/sandbox/execute", `{"code":"x"}`).Header().Get("X-Trace-Id")
	s.Must(409, "POST", "/v1/admin/tenants/test/executions/"+inline+"/webhook", "")
}
