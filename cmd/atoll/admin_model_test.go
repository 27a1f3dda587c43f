package main

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/model/adapter"
	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// catalogOf is the catalog of a server whose providers may be on loopback.
func catalogOf(t *testing.T, s model.Store, tenants tenant.Store) *model.Catalog {
	t.Helper()
	allow, err := outbound.Parse([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	rt := transport.New(allow)
	t.Cleanup(rt.CloseIdleConnections)
	return model.NewCatalog(model.CatalogConfig{
		Store: s, Tenant: tenants.Tenant, Plan: tenants.Plan,
		Check: func(ctx context.Context, base *url.URL) error { return transport.Check(ctx, allow, base) },
		Open:  func(r model.Record) (model.Model, error) { return adapter.Open(r, rt, model.DefaultBounds) },
	})
}

func TestModelCommands(t *testing.T) {
	o, _ := newOperator(t)
	said := scriptedmodel.Say("42")
	said.Usage = &model.Usage{Input: 1000, CacheRead: 400, Output: 100, Reasoning: 60}
	provider := scriptedmodel.New(t, said, scriptedmodel.Turn{Refuse: &scriptedmodel.Refusal{Status: 429, Message: "slow down"}})
	const key = "sk-provider-0123456789"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.says("tenant create acme --plan pro")
	o.says("model create acme/large --provider openai-chat --base-url "+provider.Base("openai-chat")+" --upstream large-1 --key-file "+file+" --price-input 2.50 --price-output 10 --price-cache-read 0.25 --can tools,reasoning --tenant acme",
		"name acme/large", "upstream large-1", "key on", "input 2.5, output 10, cache read 0.25, cache write 0", "can tools, reasoning", "tenants ten_")
	o.says("model list", "acme/large openai-chat large-1")
	o.says("model test acme/large --prompt hello", "answer 42", "stop end", "input 1000 (cache read 400, cache write 0), output 100 (reasoning 60)", "cost $0.0026")
	asked := provider.Requests()[0]
	if asked.Header.Get("Authorization") != "Bearer "+key || asked.Body["model"] != "large-1" {
		t.Errorf("the provider was asked %v with %v", asked.Body, asked.Header)
	}
	if _, stderr := o.run(1, "model", "test", "acme/large"); !strings.Contains(stderr, "the provider answered 429: slow down") {
		t.Errorf("a test that fails says %s", stderr)
	}
	o.says("model update acme/large --price-output 8 --all-tenants --max-output 4096", "input 2.5, output 8, cache read 0.25", "max output 4096", "tenants all")
	if _, stderr := o.run(1, "model", "update", "acme/large", "--base-url", "http://127.0.0.1:1"); !strings.Contains(stderr, "key is required when base_url changes") {
		t.Errorf("another server for the same key: %s", stderr)
	}
	if _, stderr := o.run(2, "model", "update", "acme/large"); !strings.Contains(stderr, errNothing.Error()) {
		t.Errorf("no change: %s", stderr)
	}
	out := o.says("model show acme/large --json", `"has_key": true`) + o.says("model list --json")
	events := o.says("tenant events operator", "model/acme/large/price_output 10 8", "model/acme/large/key - given")
	if strings.Contains(out+events, key) {
		t.Error("the key is shown")
	}
	for want, args := range map[string]string{
		"provider must be one of": "model create x --provider none", "base_url is required": "model create x --provider openai-chat",
		"with model_allow": "model create x --provider openai-chat --base-url http://10.0.0.1", "must not lead to a private": "model create x --provider openai-chat --base-url https://10.0.0.1",
		"is not a price": "model create x --provider openai --price-input much", "there is no tenant": "model create x --provider openai --tenant none",
		"capabilities must be": "model create x --provider openai --can fly", "exists already": "model create acme/large --provider openai", "name must have 1 to 128": "model create a//b --provider openai",
	} {
		if _, stderr := o.run(1, strings.Fields(args)...); !strings.Contains(stderr, want) {
			t.Errorf("atoll %s: %s", args, stderr)
		}
	}
	o.says("model update acme/large --plan pro --tenant acme", "tenants ten_", ", plan pro")
	if out := o.says("model key set acme acme/large --key-file "+file, "model acme/large", "base url http://127.0.0.1") + o.says("model key list acme", "acme/large http://127.0.0.1", "on"); strings.Contains(out, key) {
		t.Error("the tenant's key is shown")
	}
	o.says("model key delete acme acme/large", "deleted acme/large")
	o.run(1, "model", "key", "delete", "acme", "acme/large")
	o.says("model delete acme/large", "deleted acme/large")
	o.run(1, "model", "show", "acme/large")
}
