package modeltest

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	_ "github.com/atoll-run/atoll/internal/agent/model/adapter" // registers the providers
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// declared are models of a file.
type declared []model.Record

func (d *declared) Models() []model.Record { return *d }

// catalog gives models to two tenants, one of them on another plan, and has them bring keys
// of their own.
func catalog(t *testing.T, o Opened) {
	ctx := t.Context()
	other, err := o.Tenants.Tenant(ctx, o.Other)
	must(t, err)
	var file declared
	c := model.NewCatalog(model.CatalogConfig{
		Store: o.Store, Tenant: o.Tenants.Tenant, Plan: o.Tenants.Plan, Declared: &file,
		Check: func(context.Context, *url.URL) error { return nil },
	})
	make := func(name string, change model.Change) {
		t.Helper()
		_, err := c.Create(ctx, "key_1", name, "openai", change)
		must(t, err)
	}
	prices := model.Prices{Input: 5, Output: 7}
	make("all", model.Change{Key: new("sk-operator"), Prices: &prices})
	make("operators", model.Change{Tenants: &[]string{tenant.Operator}})
	make("by-plan", model.Change{Plans: &[]string{other.Plan}})
	make("none", model.Change{Tenants: &[]string{}})
	file = declared{
		{ID: "mdl_1111111111111111", Name: "file", Provider: "openai", BaseURL: "https://one.example", Source: "/f", Tenants: []tenant.ID{other.Name}, Plans: []string{"none"}},
		{ID: "mdl_2222222222222222", Name: "file-plan", Provider: "openai", BaseURL: "https://one.example", Source: "/f", Plans: []string{other.Plan}},
	}
	for id, want := range map[tenant.ID]string{o.Operator: "all operators", o.Other: "file file-plan all by-plan"} {
		all, err := c.Of(ctx, id)
		must(t, err)
		var got []string
		for _, r := range all {
			got = append(got, r.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("tenant %s may use %s, want %s", id, got, want)
		}
		for _, name := range []string{"all", "operators", "by-plan", "none", "file", "file-plan", "never"} {
			_, err := c.Find(ctx, id, name)
			if may := slices.Contains(got, name); may != (err == nil) || !may && (fault.KindOf(err) != fault.NotFound || err.Error() != "model not found") {
				t.Errorf("tenant %s finds %s: %v", id, name, err)
			}
		}
	}
	_, err = c.Update(ctx, "key_1", "all", model.Change{Plans: &[]string{"never"}})
	kind(t, "a plan that there is not", err, fault.Invalid)
	_, err = c.Update(ctx, "key_1", "all", model.Change{Plans: &[]string{}, AllTenants: new(true)})
	kind(t, "all tenants and plans", err, fault.Invalid)

	// A key of the tenant's own is used by it alone, and what it buys costs nothing here.
	operators, err := c.Find(ctx, o.Other, "all")
	must(t, err)
	k, err := c.SetOwnKey(ctx, "key_2", o.Other, "all", "sk-own")
	must(t, err)
	own, err := c.Find(ctx, o.Other, "all")
	must(t, err)
	if own.Key != "sk-own" || own.OwnKey != k.ID || own.Prices != (model.Prices{}) || own.Origin() == operators.Origin() {
		t.Errorf("with its own key the tenant has %+v", own)
	}
	for _, id := range []tenant.ID{o.Operator, o.Other} {
		shown, err := c.Show(ctx, id, "all")
		must(t, err)
		found, err := c.Find(ctx, o.Operator, "all")
		must(t, err)
		if shown.Key != "sk-operator" || found.Key != "sk-operator" || found.Prices != prices {
			t.Errorf("the other tenant has %+v", found)
		}
	}
	for name, key := range map[string]string{"operators": "sk-own", "never": "sk-own"} {
		_, err := c.SetOwnKey(ctx, "key_2", o.Other, name, key)
		kind(t, "a key for "+name, err, fault.NotFound)
	}
	for _, key := range []string{"", "sk own", strings.Repeat("k", model.MaxKey+1)} {
		_, err := c.SetOwnKey(ctx, "key_2", o.Other, "all", key)
		kind(t, "a bad key", err, fault.Invalid)
	}

	// The model moves: the key does not.
	_, err = c.SetOwnKey(ctx, "key_2", o.Other, "file", "sk-of-file")
	must(t, err)
	file[0].BaseURL = "https://two.example"
	_, err = c.Find(ctx, o.Other, "file")
	kind(t, "a model that moved", err, fault.Conflict)
	_, err = c.Show(ctx, o.Other, "file")
	must(t, err)
	states := func() (got []string) {
		all, err := c.OwnKeys(ctx, o.Other)
		must(t, err)
		for _, k := range all {
			use := k.Name
			if !k.InUse {
				use += " unused"
			}
			got = append(got, use)
		}
		return got
	}
	same(t, states(), []string{"all", "file unused"})
	_, err = c.SetOwnKey(ctx, "key_2", o.Other, "file", "sk-again")
	must(t, err)
	if r, err := c.Find(ctx, o.Other, "file"); err != nil || r.Key != "sk-again" {
		t.Errorf("the key that was given again: %+v, %v", r, err)
	}
	file = nil
	same(t, states(), []string{"all", "mdl_1111111111111111 unused"})
	kind(t, "another tenant's key", c.RemoveOwnKey(ctx, "key_2", o.Operator, "all"), fault.NotFound)
	must(t, c.RemoveOwnKey(ctx, "key_2", o.Other, "mdl_1111111111111111"))
	must(t, c.RemoveOwnKey(ctx, "key_2", o.Other, "all"))
	kind(t, "a key that is gone", c.RemoveOwnKey(ctx, "key_2", o.Other, "all"), fault.NotFound)
	if r, err := c.Find(ctx, o.Other, "all"); err != nil || r.Key != "sk-operator" || r.OwnKey != "" || r.Prices != prices {
		t.Errorf("without its own key the tenant has %+v, %v", r, err)
	}
	events, err := o.Events(ctx, o.Other)
	must(t, err)
	var told []string
	for _, e := range events {
		told = append(told, e.Field+" "+e.New)
	}
	same(t, told, []string{"model/all/own_key given", "model/file/own_key given", "model/file/own_key given", "model/mdl_1111111111111111/own_key none", "model/all/own_key none"})
	refused := false
	for range 300 { // each of which would leave an event for good
		_, err := c.SetOwnKey(ctx, "key_2", o.Other, "all", "sk-own")
		if refused = err != nil; refused {
			kind(t, "keys without end", err, fault.Exhausted)
			break
		}
	}
	if !refused {
		t.Error("a tenant may set its key 300 times in a row")
	}
}
