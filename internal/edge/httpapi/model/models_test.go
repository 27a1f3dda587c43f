package model_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/httpapitest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// TestModels makes models of every protocol, tests them, and lists them for keys of two
// tenants.
func TestModels(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	s.Must(201, "POST", "/v1/admin/tenants", `{"name":"acme","plan":"free"}`)
	s.Must(201, "POST", "/v1/admin/tenants/acme/environments", `{"name":"main","image":"default"}`)
	key, _ := s.Must(201, "POST", "/v1/admin/tenants/acme/keys", `{"name":"ci","environment":"main"}`)["key"].(string)
	as := func(key string) []string { return []string{"Authorization", "Bearer " + key} }

	const secret = "sk-provider-0123456789"
	for _, p := range model.Providers() {
		provider := scriptedmodel.New(t, scriptedmodel.Say("ready"), scriptedmodel.Turn{Refuse: &scriptedmodel.Refusal{Status: 400, Type: "invalid_request_error", Message: "no: " + secret}})
		name := "acme/" + string(p)
		made := s.Must(201, "POST", "/v1/admin/models", `{"name":"`+name+`","provider":"`+string(p)+`","upstream":"m-1","base_url":"`+provider.Base(p)+`","key":"`+secret+`","tenants":["acme"],"prices":{"input":"2","output":"8"}}`)
		if made["has_key"] != true || made["key"] != nil {
			t.Errorf("it is made as %v", made)
		}
		path := "/v1/admin/models/acme%2F" + string(p)
		if got := s.Must(200, "GET", path, "")["id"]; got != made["id"] {
			t.Errorf("%s is %v, want %v", path, got, made["id"])
		}
		got := s.Must(200, "POST", path+"/test", `{"prompt":"ready?"}`)
		cost, _ := got["cost"].(map[string]any)
		if got["ok"] != true || got["answer"] != "ready" || got["error"] != nil || cost["total_cost"] != 0.00006 {
			t.Errorf("the test of %s: %v", p, got)
		}
		got = s.Must(200, "POST", path+"/test", ``)
		failed, _ := got["error"].(map[string]any)
		if got["ok"] != false || failed["failure"] != "rejected" || failed["message"] != "the provider answered 400: no: [key]" || failed["status"] != 400.0 {
			t.Errorf("the test of %s that fails: %v", p, got)
		}
	}
	s.Must(201, "POST", "/v1/admin/models", `{"name":"open","provider":"anthropic","base_url":"https://192.0.78.9"}`)

	httpapitest.Answers(t, s, 200, `{"id":"acme/openai","object":"model","created":`, "GET", "/v1/models", "", as(key)...)
	all := httpapitest.Answers(t, s, 200, `"owned_by":"anthropic"`, "GET", "/v1/models", "", as(key)...)
	if !strings.HasPrefix(all, `{"object":"list","data":[{`) || strings.Count(all, `"object":"model"`) != 4 {
		t.Errorf("the list is %s", all)
	}
	for _, path := range []string{"/v1/models/acme/openai", "/v1/models/acme%2Fopenai"} {
		httpapitest.Answers(t, s, 200, `"owned_by":"acme"`, "GET", path, "", as(key)...)
	}
	// Another tenant sees what all may use, and not that there is more.
	if others := httpapitest.Answers(t, s, 200, `"id":"open"`, "GET", "/v1/models", "", as(s.AdminKey)...); strings.Contains(others, "acme") {
		t.Errorf("another tenant sees %s", others)
	}
	for _, name := range []string{"acme/openai", "none", "a..b/../c%20d", "%2F"} {
		w := httpapitest.Ask(s, "GET", "/v1/models/"+strings.ReplaceAll(name, "/../", "%2F..%2F"), "", as(s.AdminKey)...)
		httpapitest.Refused(t, w, http.StatusNotFound, "not_found", "model not found")
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/models", "", as("sk-atoll-unknown")...), http.StatusUnauthorized, "unauthorized", "invalid API key")
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/admin/models", "", as(key)...), http.StatusForbidden, "forbidden", "admin")

	s.Must(200, "PATCH", "/v1/admin/models/acme%2Fopenai", `{"all_tenants":true,"upstream":"m-2"}`)
	httpapitest.Answers(t, s, 200, `"owned_by":"acme"`, "GET", "/v1/models/acme/openai", "", as(s.AdminKey)...)
	s.Must(400, "PATCH", "/v1/admin/models/open", `{"prices":{"input":"1e3"}}`)
	s.Must(204, "DELETE", "/v1/admin/models/acme%2Fopenai", "")
	s.Must(404, "DELETE", "/v1/admin/models/acme%2Fopenai", "")
}

// TestDeclared has models of a file beside those of the API: they cannot be changed, and
// are used in place of one that has their name.
func TestDeclared(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	s.Must(201, "POST", "/v1/admin/tenants", `{"name":"acme","plan":"free"}`)
	s.Must(201, "POST", "/v1/admin/tenants/acme/environments", `{"name":"main","image":"default"}`)
	key, _ := s.Must(201, "POST", "/v1/admin/tenants/acme/keys", `{"name":"ci","environment":"main"}`)["key"].(string)
	as := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
	overridden, _ := s.Must(201, "POST", "/v1/admin/models", `{"name":"both","provider":"openai"}`)["id"].(string)

	const secret, path = "sk-provider-0123456789", "/etc/atoll/models.yaml"
	provider := scriptedmodel.New(t, scriptedmodel.Say("ready"))
	both := model.Record{
		ID: "mdl_0000000000000001", Name: "both", Provider: "openai-chat", Upstream: "m-1", BaseURL: provider.Base("openai-chat"), Key: secret,
		Spec: model.Spec{Capabilities: model.DefaultCapabilities}, Tenants: []tenant.ID{"acme"}, Source: path,
	}
	open := both
	open.ID, open.Name, open.AllTenants, open.Tenants = "mdl_0000000000000002", "open", true, nil
	s.Declared.Set(both, open)

	list := httpapitest.Answers(t, s, 200, `"file":"`+path+`"`, "GET", "/v1/admin/models", "", as(s.AdminKey)...)
	if strings.Contains(list, secret) || strings.Count(list, `"source":"file"`) != 2 || strings.Count(list, `"source":"api","overridden":true`) != 1 {
		t.Errorf("the list is %s", list)
	}
	if got := s.Must(200, "GET", "/v1/admin/models/both", ""); got["id"] != both.ID || got["source"] != "file" || got["has_key"] != true {
		t.Errorf("the declared one is %v", got)
	}
	if got := s.Must(200, "POST", "/v1/admin/models/both/test", `{}`); got["answer"] != "ready" {
		t.Errorf("the test of the declared one: %v", got)
	}
	for _, change := range [][3]string{{"POST", "/v1/admin/models", `{"name":"open","provider":"openai"}`}, {"PATCH", "/v1/admin/models/open", `{"upstream":"x"}`}, {"DELETE", "/v1/admin/models/both", ""}, {"DELETE", "/v1/admin/models/" + open.ID, ""}} {
		w := httpapitest.Ask(s, change[0], change[1], change[2], "Authorization", "Bearer "+s.AdminKey, "Content-Type", "application/json")
		httpapitest.Refused(t, w, http.StatusConflict, "conflict", "is defined in "+path+": change it there")
	}
	// The tenant is named; what the declared one overrides serves none.
	for who, want := range map[string]int{key: 2, s.AdminKey: 1} {
		if got := httpapitest.Answers(t, s, 200, `"id":"open"`, "GET", "/v1/models", "", as(who)...); strings.Count(got, `"object":"model"`) != want {
			t.Errorf("a tenant sees %s, want %d", got, want)
		}
	}
	httpapitest.Answers(t, s, 200, `"id":"both"`, "GET", "/v1/models/both", "", as(key)...)
	for _, name := range []string{"both", both.ID, overridden} {
		httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/models/"+name, "", as(s.AdminKey)...), http.StatusNotFound, "not_found", "model not found")
	}

	if got := s.Must(200, "PATCH", "/v1/admin/models/"+overridden, `{"upstream":"m-2"}`); got["upstream"] != "m-2" || got["overridden"] != true {
		t.Errorf("the other is changed as %v", got)
	}
	s.Declared.Set()
	if got := s.Must(200, "GET", "/v1/admin/models/both", ""); got["id"] != overridden || got["upstream"] != "m-2" || got["overridden"] != nil {
		t.Errorf("without the file it is %v", got)
	}
	s.Must(204, "DELETE", "/v1/admin/models/both", "")
}

// TestOwnKeys has two tenants and the operator give, list and remove keys of tenants' own.
func TestOwnKeys(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	keys := map[string]string{}
	for _, name := range []string{"acme", "other"} {
		s.Must(201, "POST", "/v1/admin/tenants", `{"name":"`+name+`","plan":"pro"}`)
		s.Must(201, "POST", "/v1/admin/tenants/"+name+"/environments", `{"name":"main","image":"default"}`)
		keys[name], _ = s.Must(201, "POST", "/v1/admin/tenants/"+name+"/keys", `{"name":"own","environment":"main","scopes":["environments"]}`)["key"].(string)
	}
	executes, _ := s.Must(201, "POST", "/v1/admin/tenants/acme/keys", `{"name":"ci","environment":"main"}`)["key"].(string)
	as := func(key string) []string {
		return []string{"Authorization", "Bearer " + key, "Content-Type", "application/json"}
	}
	const secret = "sk-own-0123456789"
	s.Must(201, "POST", "/v1/admin/models", `{"name":"acme/large","provider":"openai","key":"sk-operator","plans":["pro"]}`)
	s.Must(201, "POST", "/v1/admin/models", `{"name":"small","provider":"openai","tenants":["acme"]}`)

	all := ""
	for _, name := range []string{"acme/large", "small"} {
		all += httpapitest.Answers(t, s, 200, `{"model":"`+name+`","base_url":"https://api.openai.com/v1","in_use":true,`, "PUT", "/v1/model-keys/"+name, `{"key":"`+secret+`"}`, as(keys["acme"])...)
	}
	all += httpapitest.Answers(t, s, 200, `"model":"small"`, "GET", "/v1/model-keys", "", as(keys["acme"])...)
	all += httpapitest.Answers(t, s, 200, `"model":"small"`, "GET", "/v1/admin/tenants/acme/model-keys", "", as(s.AdminKey)...)
	all += httpapitest.Answers(t, s, 200, `own_key`, "GET", "/v1/admin/tenants/acme/policy-events", "", as(s.AdminKey)...)
	all += httpapitest.Answers(t, s, 200, `"plans":["pro"]`, "GET", "/v1/admin/models/acme%2Flarge", "", as(s.AdminKey)...)
	if strings.Contains(all, secret) {
		t.Errorf("the key is shown: %s", all)
	}
	// Another tenant has none of it, nor a model that it may not use.
	if got := httpapitest.Answers(t, s, 200, `"data":[]`, "GET", "/v1/model-keys", "", as(keys["other"])...); strings.Contains(got, "acme") {
		t.Errorf("another tenant sees %s", got)
	}
	for _, c := range [][4]string{
		{keys["other"], "PUT", "/v1/model-keys/small", `{"key":"x"}`}, {keys["other"], "PUT", "/v1/model-keys/never", `{"key":"x"}`}, {keys["other"], "DELETE", "/v1/model-keys/small", ""},
		{keys["other"], "DELETE", "/v1/model-keys/acme/large", ""}, {s.AdminKey, "PUT", "/v1/admin/tenants/other/model-keys/small", `{"key":"x"}`},
		{s.AdminKey, "PUT", "/v1/admin/tenants/never/model-keys/small", `{"key":"x"}`}, {s.AdminKey, "DELETE", "/v1/admin/tenants/other/model-keys/acme%2Flarge", ""},
	} {
		httpapitest.Refused(t, httpapitest.Ask(s, c[1], c[2], c[3], as(c[0])...), http.StatusNotFound, "not_found", "")
	}
	for _, method := range []string{"PUT", "DELETE"} {
		httpapitest.Refused(t, httpapitest.Ask(s, method, "/v1/model-keys/small", `{"key":"x"}`, as(executes)...), http.StatusForbidden, "forbidden", "environments")
	}
	for _, body := range []string{`{}`, `{"key":""}`, `{"key":"a b"}`} {
		httpapitest.Refused(t, httpapitest.Ask(s, "PUT", "/v1/model-keys/small", body, as(keys["acme"])...), http.StatusBadRequest, "validation_error", "key")
	}

	httpapitest.Answers(t, s, 200, `"model":"acme/large"`, "PUT", "/v1/admin/tenants/other/model-keys/acme%2Flarge", `{"key":"`+secret+`"}`, as(s.AdminKey)...)
	httpapitest.Answers(t, s, 200, `"model":"acme/large"`, "GET", "/v1/model-keys", "", as(keys["other"])...)
	httpapitest.Answers(t, s, 204, "", "DELETE", "/v1/admin/tenants/other/model-keys/acme%2Flarge", "", as(s.AdminKey)...)
	httpapitest.Answers(t, s, 204, "", "DELETE", "/v1/model-keys/acme/large", "", as(keys["acme"])...)
	// A tenant that goes to another plan loses what the plan had.
	s.Must(200, "PATCH", "/v1/admin/tenants/other", `{"plan":"free"}`)
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/models/acme/large", "", as(keys["other"])...), http.StatusNotFound, "not_found", "model not found")
	httpapitest.Answers(t, s, 200, `"id":"acme/large"`, "GET", "/v1/models/acme/large", "", as(keys["acme"])...)
}
