package store_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// TestSettingContent stores a setting with the content of a file, which comes and goes with it.
func TestSettingContent(t *testing.T) {
	ctx := t.Context()
	db := storetest.SQLite(t)
	if err := db.Tenants().CreateTenant(ctx, tenant.Tenant{ID: "ten_1", Name: "acme", Plan: "free", Tier: tenant.Standard, AuditDays: 30}); err != nil {
		t.Fatal(err)
	}
	const name = "sandbox_ca_bundle"
	event := tenant.PolicyEvent{Tenant: "ten_1", Actor: "host:t", Field: "setting/" + name}
	change := func(err error, text, content string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		all, err := db.Settings(ctx)
		if err != nil || all[name] != text || len(all) > 1 {
			t.Errorf("the settings are %q, %v", all, err)
		}
		got, err := db.SettingContent(ctx, name)
		if string(got) != content || (err == nil) != (content != "") {
			t.Errorf("the content is %q, %v, want %q", got, err, content)
		}
	}
	change(db.SetSetting(ctx, name, "one", []byte("1"), event), "one", "1")
	change(db.SetSetting(ctx, name, "two", []byte("2"), event), "two", "2")
	change(db.SetSetting(ctx, name, "", nil, event), "", "")
	change(db.SetSetting(ctx, name, "one", []byte("1"), event), "one", "1")
	change(db.UnsetSetting(ctx, name, event), "", "")
}
