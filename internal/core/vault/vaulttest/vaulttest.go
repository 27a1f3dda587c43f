// Package vaulttest is the suite that every vault.Store passes.
package vaulttest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/test/check"
)

const mine, theirs = "ten_1", "ten_2"

// Bearer returns a credential for an MCP server that is not stored yet.
func Bearer(of *vault.Vault, url string) *vault.Credential {
	return &vault.Credential{ID: vault.NewCredentialID(), Vault: of.ID, Tenant: of.Tenant, Kind: vault.StaticBearer, Auth: vault.Auth{ServerURL: url}}
}

func variable(of *vault.Vault, name string) *vault.Credential {
	return &vault.Credential{ID: vault.NewCredentialID(), Vault: of.ID, Tenant: of.Tenant, Kind: vault.HostSecret,
		Auth: vault.Auth{Variable: name, Binding: tenant.Binding{Hosts: []string{"api.example.com"}, Placeholder: "p-" + name}}}
}

var must = check.Must

func made(t *testing.T, s vault.Store, of tenant.ID, name string) *vault.Vault {
	t.Helper()
	v := &vault.Vault{ID: vault.NewID(), Tenant: of, About: vault.About{Name: name, Metadata: map[string]string{"user": "u-1"}}}
	must(t, s.Create(t.Context(), v, 0))
	return v
}

func is(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if fault.KindOf(err) != kind || err == nil {
		t.Errorf("%s: %v", what, err)
	}
}

// Store checks a store; open makes an empty one.
func Store(t *testing.T, open func(t *testing.T) vault.Store) {
	t.Run("vaults", func(t *testing.T) { vaults(t, open(t)) })
	t.Run("credentials", func(t *testing.T) { credentials(t, open(t)) })
	t.Run("use", func(t *testing.T) { use(t, open(t)) })
	t.Run("limits", func(t *testing.T) { limits(t, open(t)) })
	t.Run("tenants", func(t *testing.T) { tenants(t, open(t)) })
	t.Run("races", func(t *testing.T) { races(t, open(t)) })
}

func vaults(t *testing.T, s vault.Store) {
	ctx := t.Context()
	var all []*vault.Vault
	for i := range 3 {
		all = append(all, made(t, s, mine, fmt.Sprint("vault ", i)))
	}
	got, err := s.Get(ctx, mine, all[0].ID)
	must(t, err)
	if !reflect.DeepEqual(got, all[0]) || got.CreatedAt.IsZero() {
		t.Errorf("got %+v, want %+v", got, all[0])
	}
	got, err = s.Update(ctx, mine, all[0].ID, vault.About{Name: "renamed"})
	must(t, err)
	if got.About.Name != "renamed" || got.About.Metadata != nil {
		t.Errorf("changed to %+v", got.About)
	}
	page, next, err := s.List(ctx, mine, vault.Filter{Page: vault.Page{Limit: 2}})
	must(t, err)
	if len(page) != 2 || page[0].ID != all[2].ID || next == "" {
		t.Errorf("a page of %d, then %q", len(page), next)
	}
	page, next, err = s.List(ctx, mine, vault.Filter{Page: vault.Page{Limit: 2, Cursor: next}})
	must(t, err)
	if len(page) != 1 || page[0].About.Name != "renamed" || next != "" {
		t.Errorf("the last page is %+v, then %q", page, next)
	}
	c := Bearer(all[1], "https://a.example/mcp")
	must(t, s.Add(ctx, c, vault.Secret{Value: "token-one"}))
	for range 2 {
		got, err = s.Archive(ctx, mine, all[1].ID)
		must(t, err)
		if !got.Archived() {
			t.Errorf("%+v", got)
		}
	}
	_, err = s.Update(ctx, mine, all[1].ID, vault.About{Name: "x"})
	is(t, "a change of one that is archived", err, fault.Conflict)
	is(t, "a credential of one that is archived", s.Add(ctx, Bearer(all[1], "https://b.example/mcp"), vault.Secret{Value: "token-two"}), fault.Conflict)
	if kept, err := s.Credential(ctx, mine, all[1].ID, c.ID); err != nil || !kept.Archived() {
		t.Errorf("its credential: %+v, %v", kept, err)
	}
	page, _, err = s.List(ctx, mine, vault.Filter{Page: vault.Page{Limit: 9}})
	must(t, err)
	every, _, err := s.List(ctx, mine, vault.Filter{Page: vault.Page{Limit: 9}, Archived: true})
	must(t, err)
	if len(page) != 2 || len(every) != 3 {
		t.Errorf("%d in use of %d", len(page), len(every))
	}
	must(t, s.Delete(ctx, mine, all[1].ID))
	is(t, "deleted again", s.Delete(ctx, mine, all[1].ID), fault.NotFound)
	_, err = s.Credential(ctx, mine, all[1].ID, c.ID)
	is(t, "the credential of a deleted vault", err, fault.NotFound)
}

func credentials(t *testing.T, s vault.Store) {
	ctx, v := t.Context(), made(t, s, mine, "v")
	c := &vault.Credential{ID: vault.NewCredentialID(), Vault: v.ID, Tenant: mine, Kind: vault.MCPOAuth, About: vault.About{Name: "n", Metadata: map[string]string{"a": "b"}}, Auth: vault.Auth{
		ServerURL: "https://a.example/mcp", ExpiresAt: time.Unix(1_900_000_000, 0).UTC(),
		Refresh: &vault.Refresh{ClientID: "client", Endpoint: "https://a.example/token", EndpointAuth: vault.AuthPost, Scope: "s", Resource: "r"},
	}}
	secret := vault.Secret{Value: "access", RefreshToken: "refresh", ClientSecret: "client secret"}
	must(t, s.Add(ctx, c, secret))
	got, err := s.Credential(ctx, mine, v.ID, c.ID)
	must(t, err)
	if !reflect.DeepEqual(got, c) || got.Version != 1 {
		t.Errorf("got %+v, want %+v", got, c)
	}
	is(t, "another for the same", s.Add(ctx, Bearer(v, "HTTPS://A.example:443/mcp/"), secret), fault.Conflict)
	changed, err := s.Change(ctx, mine, v.ID, c.ID, func(c *vault.Credential, old *vault.Secret) error {
		if *old != secret {
			t.Errorf("it was %+v", old)
		}
		c.About.Name, old.Value = "other", "access two"
		return nil
	})
	must(t, err)
	if changed.Version != 2 || changed.About.Name != "other" {
		t.Errorf("changed to %+v", changed)
	}
	refused := errors.New("refused")
	if _, err := s.Change(ctx, mine, v.ID, c.ID, func(c *vault.Credential, _ *vault.Secret) error { c.About.Name = "never"; return refused }); !errors.Is(err, refused) {
		t.Errorf("a change that is refused: %v", err)
	}
	h, err := s.ForServer(ctx, mine, []vault.ID{v.ID}, "https://a.example/mcp")
	must(t, err)
	if h == nil || h.Secret != (vault.Secret{Value: "access two", RefreshToken: "refresh", ClientSecret: "client secret"}) || h.About.Name != "other" {
		t.Errorf("used as %+v", h)
	}
	for range 2 {
		if got, err = s.ArchiveCredential(ctx, mine, v.ID, c.ID); err != nil || !got.Archived() {
			t.Errorf("%+v, %v", got, err)
		}
	}
	_, err = s.Change(ctx, mine, v.ID, c.ID, func(*vault.Credential, *vault.Secret) error { return nil })
	is(t, "a change of one that is archived", err, fault.Conflict)
	must(t, s.Add(ctx, Bearer(v, "https://a.example/mcp"), secret))
	page, _, err := s.Credentials(ctx, mine, v.ID, vault.Filter{Page: vault.Page{Limit: 9}})
	must(t, err)
	every, _, err := s.Credentials(ctx, mine, v.ID, vault.Filter{Page: vault.Page{Limit: 9}, Archived: true})
	must(t, err)
	if len(page) != 1 || len(every) != 2 {
		t.Errorf("%d in use of %d", len(page), len(every))
	}
	must(t, s.DeleteCredential(ctx, mine, v.ID, c.ID))
	is(t, "deleted again", s.DeleteCredential(ctx, mine, v.ID, c.ID), fault.NotFound)
}

func use(t *testing.T, s vault.Store) {
	ctx, first, second := t.Context(), made(t, s, mine, "first"), made(t, s, mine, "second")
	both := []vault.ID{second.ID, first.ID}
	token := func(want string) {
		t.Helper()
		h, err := s.ForServer(ctx, mine, both, "https://a.example/mcp")
		if must(t, err); want == "" && h != nil || want != "" && (h == nil || h.Secret.Value != want) {
			t.Errorf("the token is %+v, want %q", h, want)
		}
	}
	token("")
	must(t, s.Add(ctx, Bearer(first, "https://a.example/mcp"), vault.Secret{Value: "of the first"}))
	token("of the first")
	c := Bearer(second, "https://a.example/mcp")
	must(t, s.Add(ctx, c, vault.Secret{Value: "of the second"}))
	token("of the second")
	_, err := s.ArchiveCredential(ctx, mine, second.ID, c.ID)
	must(t, err)
	token("of the first")
	for _, of := range []*vault.Vault{first, second} {
		must(t, s.Add(ctx, variable(of, "SAME"), vault.Secret{Value: "of " + of.About.Name}))
	}
	must(t, s.Add(ctx, variable(first, "OTHER"), vault.Secret{Value: "other"}))
	hosts, err := s.Hosts(ctx, mine, both)
	must(t, err)
	if len(hosts) != 2 || hosts[0].Secret.Value != "of second" || hosts[1].Auth.Variable != "OTHER" || hosts[1].Auth.Binding.Placeholder != "p-OTHER" {
		t.Errorf("secrets of hosts: %+v", hosts)
	}
	_, err = s.Archive(ctx, mine, first.ID)
	must(t, err)
	token("")
	if hosts, err = s.Hosts(ctx, mine, both); err != nil || len(hosts) != 1 {
		t.Errorf("%+v, %v", hosts, err)
	}
	if none, err := s.Hosts(ctx, mine, nil); err != nil || none != nil {
		t.Errorf("of no vault: %v, %v", none, err)
	}
}

func limits(t *testing.T, s vault.Store) {
	ctx, v := t.Context(), made(t, s, mine, "v")
	is(t, "a vault too many", s.Create(ctx, &vault.Vault{ID: vault.NewID(), Tenant: mine}, 1), fault.Exhausted)
	must(t, s.Create(ctx, &vault.Vault{ID: vault.NewID(), Tenant: theirs}, 1))
	for i := range vault.MaxCredentials {
		must(t, s.Add(ctx, variable(v, fmt.Sprint("V", i)), vault.Secret{Value: "x"}))
	}
	is(t, "a credential too many", s.Add(ctx, variable(v, "MORE"), vault.Secret{Value: "x"}), fault.Exhausted)
}

func tenants(t *testing.T, s vault.Store) {
	ctx, v, own := t.Context(), made(t, s, mine, "v"), made(t, s, theirs, "own")
	c := Bearer(v, "https://a.example/mcp")
	must(t, s.Add(ctx, c, vault.Secret{Value: "secret"}))
	stolen := *c
	stolen.ID, stolen.Tenant, stolen.Auth.ServerURL = vault.NewCredentialID(), theirs, "https://b.example/mcp"
	for what, do := range map[string]func() error{
		"get":             func() error { _, err := s.Get(ctx, theirs, v.ID); return err },
		"update":          func() error { _, err := s.Update(ctx, theirs, v.ID, vault.About{Name: "x"}); return err },
		"archive":         func() error { _, err := s.Archive(ctx, theirs, v.ID); return err },
		"delete":          func() error { return s.Delete(ctx, theirs, v.ID) },
		"add":             func() error { return s.Add(ctx, &stolen, vault.Secret{Value: "x"}) },
		"credential":      func() error { _, err := s.Credential(ctx, theirs, v.ID, c.ID); return err },
		"credential, own": func() error { _, err := s.Credential(ctx, theirs, own.ID, c.ID); return err },
		"credentials": func() error {
			_, _, err := s.Credentials(ctx, theirs, v.ID, vault.Filter{Page: vault.Page{Limit: 1}})
			return err
		},
		"archive credential": func() error { _, err := s.ArchiveCredential(ctx, theirs, v.ID, c.ID); return err },
		"delete credential":  func() error { return s.DeleteCredential(ctx, theirs, own.ID, c.ID) },
		"change": func() error {
			_, err := s.Change(ctx, theirs, v.ID, c.ID, func(*vault.Credential, *vault.Secret) error { return nil })
			return err
		},
	} {
		is(t, what, do(), fault.NotFound)
	}
	if h, err := s.ForServer(ctx, theirs, []vault.ID{v.ID}, "https://a.example/mcp"); h != nil || err != nil {
		t.Errorf("another tenant's credential is used: %+v, %v", h, err)
	}
	page, _, err := s.List(ctx, theirs, vault.Filter{Page: vault.Page{Limit: 9}})
	if must(t, err); len(page) != 1 {
		t.Errorf("lists %+v", page)
	}
}

// races has one of many refresh a credential at a time, and one of many be the only one for a
// server.
func races(t *testing.T, s vault.Store) {
	ctx, v := t.Context(), made(t, s, mine, "v")
	c := Bearer(v, "https://a.example/mcp")
	must(t, s.Add(ctx, c, vault.Secret{Value: "x"}))
	var leases, added atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := s.Lease(ctx, c, time.Minute); err != nil {
				t.Error(err)
			} else if got {
				leases.Add(1)
			}
			switch err := s.Add(ctx, Bearer(v, "https://b.example/mcp"), vault.Secret{Value: "y"}); {
			case err == nil:
				added.Add(1)
			case !errors.Is(err, vault.ErrTaken):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if leases.Load() != 1 || added.Load() != 1 {
		t.Errorf("%d leases, %d added", leases.Load(), added.Load())
	}
	changed, err := s.Change(ctx, mine, v.ID, c.ID, func(*vault.Credential, *vault.Secret) error { return nil })
	must(t, err)
	if got, err := s.Lease(ctx, c, time.Minute); got || err != nil {
		t.Errorf("a lease of what has changed: %t, %v", got, err)
	}
	for _, d := range []time.Duration{time.Minute, 0} { // with 0 it is given back
		if got, err := s.Lease(ctx, changed, d); !got || err != nil {
			t.Errorf("a lease after a change: %t, %v", got, err)
		}
	}
	time.Sleep(time.Millisecond)
	if got, err := s.Lease(ctx, changed, time.Minute); !got || err != nil {
		t.Errorf("a lease that was given back: %t, %v", got, err)
	}
}
