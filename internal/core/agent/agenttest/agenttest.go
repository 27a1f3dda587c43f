// Package agenttest is the suite that every agent.Store passes.
package agenttest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// New returns an agent that is not stored yet.
func New(tenant, slug string) *agent.Agent {
	return &agent.Agent{ID: agent.NewID(), Tenant: tenant, Slug: slug, Visibility: agent.Private, Definition: agent.Definition{
		Name: "Support", System: "Be concise.", Model: agent.Model{Name: "m", MaxTokens: 4096, Temperature: new(0.7), Stop: []string{"\n\nHuman:"}},
		Tools:    []agent.Tool{{Type: agent.MCP, Server: "orders"}, {Type: agent.Custom, Name: "ask", Schema: json.RawMessage(`{"type":"object"}`)}},
		Servers:  []agent.Server{{Name: "orders", URL: "https://mcp.example.com/orders", Headers: map[string]string{"Authorization": "Bearer secret"}}},
		Policy:   agent.Policy{Confirm: []string{"ask"}},
		Metadata: map[string]json.RawMessage{"team": json.RawMessage(`"a"`)},
	}}
}

// Store checks a store; open makes an empty one.
func Store(t *testing.T, open func(t *testing.T) agent.Store) {
	t.Run("versions", func(t *testing.T) { versions(t, open(t)) })
	t.Run("tenants", func(t *testing.T) { tenants(t, open(t)) })
	t.Run("races", func(t *testing.T) { races(t, open(t)) })
	t.Run("pages", func(t *testing.T) { pages(t, open(t)) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("%v, want a fault of kind %d", err, kind)
	}
}

func versions(t *testing.T, s agent.Store) {
	ctx, a := t.Context(), New("ten_1", "support")
	must(t, s.Create(ctx, a))
	if a.Version != 1 || a.CreatedAt.IsZero() || a.UpdatedAt != a.CreatedAt {
		t.Errorf("created %+v", a)
	}
	for _, name := range []string{"support", string(a.ID)} {
		got, err := s.Get(ctx, "ten_1", name)
		must(t, err)
		if !reflect.DeepEqual(got, a) {
			t.Errorf("%s: %+v, want %+v", name, got, a)
		}
	}
	second := *a
	second.Version, second.Slug, second.Definition.System = 2, "help", "Be kind."
	must(t, s.Update(ctx, &second))
	refused(t, s.Update(ctx, &second), fault.Conflict)
	if got, err := s.Get(ctx, "ten_1", "help"); err != nil || got.Definition.System != "Be kind." || got.Version != 2 {
		t.Errorf("the second version is %+v, %v", got, err)
	}
	if got, err := s.At(ctx, "ten_1", "help", 1); err != nil || got.Definition.System != "Be concise." || got.Version != 1 {
		t.Errorf("the first version is %+v, %v", got, err)
	}
	_, err := s.At(ctx, "ten_1", "help", 3)
	refused(t, err, fault.NotFound)
	_, err = s.Get(ctx, "ten_1", "support")
	refused(t, err, fault.NotFound)

	archived, err := s.Archive(ctx, "ten_1", "help")
	must(t, err)
	if again, err := s.Archive(ctx, "ten_1", "help"); err != nil || !archived.Archived() || again.ArchivedAt != archived.ArchivedAt {
		t.Errorf("archived %+v, then %+v, %v", archived, again, err)
	}
	third := second
	third.Version = 3
	refused(t, s.Update(ctx, &third), fault.Conflict)
}

func tenants(t *testing.T, s agent.Store) {
	ctx, a := t.Context(), New("ten_1", "support")
	must(t, s.Create(ctx, a))
	must(t, s.Create(ctx, New("ten_2", "support")))
	refused(t, s.Create(ctx, New("ten_1", "support")), fault.Conflict)
	must(t, s.Create(ctx, New("ten_1", ""))) // any number has none
	must(t, s.Create(ctx, New("ten_1", "")))
	_, err := s.Get(ctx, "ten_1", "")
	refused(t, err, fault.NotFound)
	id := string(a.ID)
	_, err = s.Get(ctx, "ten_2", id)
	refused(t, err, fault.NotFound)
	_, err = s.At(ctx, "ten_2", id, 1)
	refused(t, err, fault.NotFound)
	_, _, err = s.Versions(ctx, "ten_2", id, agent.Page{Limit: 1})
	refused(t, err, fault.NotFound)
	_, err = s.Archive(ctx, "ten_2", id)
	refused(t, err, fault.NotFound)
	other := *a
	other.Tenant, other.Version = "ten_2", 2
	refused(t, s.Update(ctx, &other), fault.NotFound)
	if got, err := s.Get(ctx, "ten_1", id); err != nil || got.Version != 1 || got.Archived() {
		t.Errorf("another tenant left %+v, %v", got, err)
	}
}

// races has 20 writers make the second version: one wins.
func races(t *testing.T, s agent.Store) {
	a := New("ten_1", "support")
	must(t, s.Create(t.Context(), a))
	var mu sync.Mutex
	var wg sync.WaitGroup
	won := 0
	for range 20 {
		wg.Go(func() {
			mine := *a
			mine.Version = 2
			err := s.Update(t.Context(), &mine)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if fault.KindOf(err) != fault.Conflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d writers made version 2", won)
	}
}

func pages(t *testing.T, s agent.Store) {
	ctx := t.Context()
	for i := range 5 {
		must(t, s.Create(ctx, New("ten_1", fmt.Sprintf("a%d", i))))
	}
	_, err := s.Archive(ctx, "ten_1", "a3")
	must(t, err)
	read := func(archived bool) (slugs []string) {
		for next := ""; ; {
			var page []agent.Agent
			page, next, err = s.List(ctx, "ten_1", agent.Filter{Page: agent.Page{Cursor: next, Limit: 2}, Archived: archived})
			must(t, err)
			for _, a := range page {
				slugs = append(slugs, a.Slug)
			}
			if next == "" {
				return slugs
			}
		}
	}
	if got := read(false); !reflect.DeepEqual(got, []string{"a4", "a2", "a1", "a0"}) {
		t.Error(got)
	}
	if got := read(true); !reflect.DeepEqual(got, []string{"a4", "a3", "a2", "a1", "a0"}) {
		t.Error(got)
	}
	a, err := s.Get(ctx, "ten_1", "a0")
	must(t, err)
	for v := 2; v <= 3; v++ {
		a.Version = v
		must(t, s.Update(ctx, a))
	}
	page, next, err := s.Versions(ctx, "ten_1", "a0", agent.Page{Limit: 2})
	must(t, err)
	if len(page) != 2 || page[0].Version != 3 || page[1].Version != 2 || next == "" {
		t.Errorf("%+v %q", page, next)
	}
	if page, next, err = s.Versions(ctx, "ten_1", "a0", agent.Page{Limit: 2, Cursor: next}); err != nil || len(page) != 1 || page[0].Version != 1 || next != "" {
		t.Errorf("%+v %q %v", page, next, err)
	}
	_, _, err = s.List(ctx, "ten_2", agent.Filter{Page: agent.Page{Cursor: "AAAA", Limit: 2}})
	refused(t, err, fault.Invalid)
}
