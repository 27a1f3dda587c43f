// Package agenttest is the suite that every agent.Store passes.
package agenttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/test/check"
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
	t.Run("templates", func(t *testing.T) { templates(t, open(t)) })
	t.Run("races for a version", func(t *testing.T) { versionRaces(t, open(t)) })
	t.Run("races for a slug", func(t *testing.T) { slugRaces(t, open(t)) })
	t.Run("pages", func(t *testing.T) { pages(t, open(t)) })
	t.Run("nothing is not all", func(t *testing.T) { empty(t, open(t)) })
	t.Run("limits", func(t *testing.T) { limits(t, open(t)) })
	t.Run("deletion", func(t *testing.T) { deletion(t, open(t)) })
}

var none agent.Limits

var must = check.Must

func refused(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("%v, want a fault of kind %d", err, kind)
	}
}

func versions(t *testing.T, s agent.Store) {
	ctx, a := t.Context(), New("ten_1", "support")
	must(t, s.Create(ctx, a, none))
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
	must(t, s.Update(ctx, &second, none))
	refused(t, s.Update(ctx, &second, none), fault.Conflict)
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
	refused(t, s.Update(ctx, &third, none), fault.Conflict)
}

func tenants(t *testing.T, s agent.Store) {
	ctx, a := t.Context(), New("ten_1", "support")
	must(t, s.Create(ctx, a, none))
	must(t, s.Create(ctx, New("ten_2", "support"), none))
	refused(t, s.Create(ctx, New("ten_1", "support"), none), fault.Conflict)
	must(t, s.Create(ctx, New("ten_1", ""), none)) // any number has none
	must(t, s.Create(ctx, New("ten_1", ""), none))
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
	refused(t, s.Update(ctx, &other, none), fault.NotFound)
	if got, err := s.Get(ctx, "ten_1", id); err != nil || got.Version != 1 || got.Archived() {
		t.Errorf("another tenant left %+v, %v", got, err)
	}
}

func templates(t *testing.T, s agent.Store) {
	ctx, a := t.Context(), New("ten_1", "support")
	must(t, s.Create(ctx, a, none))
	_, err := s.Template(ctx, a.ID)
	refused(t, err, fault.NotFound)
	a.Version, a.Visibility = 2, agent.Template
	must(t, s.Update(ctx, a, none))
	got, err := s.Template(ctx, a.ID)
	must(t, err)
	if got.Tenant != "ten_1" || got.Version != 2 {
		t.Errorf("%+v", got)
	}
	_, err = s.Get(ctx, "ten_2", string(a.ID))
	refused(t, err, fault.NotFound)
	_, err = s.Archive(ctx, "ten_1", "support")
	must(t, err)
	_, err = s.Template(ctx, a.ID)
	refused(t, err, fault.NotFound)
}

// race has 50 do the same at once, and returns which one won; all others must find a conflict.
func race(t *testing.T, do func(i int) error) int {
	t.Helper()
	const writers = 50
	var wg sync.WaitGroup
	begin, won := make(chan struct{}), make(chan int, writers)
	for i := range writers {
		wg.Go(func() {
			<-begin
			if err := do(i); err == nil {
				won <- i
			} else if fault.KindOf(err) != fault.Conflict {
				t.Error(err)
			}
		})
	}
	close(begin)
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d of %d have won", len(won), writers)
	}
	return <-won
}

// versionRaces make ten versions one after the other, each of which is that of its one winner.
func versionRaces(t *testing.T, s agent.Store) {
	ctx, a := t.Context(), New("ten_1", "support")
	must(t, s.Create(ctx, a, none))
	for version := 2; version < 12; version++ {
		winner := race(t, func(i int) error {
			mine := *a
			mine.Version, mine.Definition.System = version, fmt.Sprint(i)
			return s.Update(ctx, &mine, none)
		})
		for _, read := range []func() (*agent.Agent, error){
			func() (*agent.Agent, error) { return s.Get(ctx, "ten_1", "support") },
			func() (*agent.Agent, error) { return s.At(ctx, "ten_1", "support", version) },
		} {
			if got, err := read(); err != nil || got.Version != version || got.Definition.System != fmt.Sprint(winner) {
				t.Errorf("version %d is %+v, %v, and %d has won", version, got, err, winner)
			}
		}
	}
}

// slugRaces make agents of the same slug, and give it to agents that are there.
func slugRaces(t *testing.T, s agent.Store) {
	ctx := t.Context()
	var made [50]*agent.Agent
	for i := range made {
		made[i] = New("ten_1", "first")
	}
	winner := race(t, func(i int) error { return s.Create(ctx, made[i], none) })
	for i := range made {
		if i != winner {
			made[i].Slug = ""
			must(t, s.Create(ctx, made[i], none))
		}
	}
	if got, err := s.Get(ctx, "ten_1", "first"); err != nil || got.ID != made[winner].ID {
		t.Errorf("first is %+v, %v", got, err)
	}
	winner = race(t, func(i int) error {
		mine := *made[i]
		mine.Version, mine.Slug = 2, "second"
		return s.Update(ctx, &mine, none)
	})
	if got, err := s.Get(ctx, "ten_1", "second"); err != nil || got.ID != made[winner].ID {
		t.Errorf("second is %+v, %v", got, err)
	}
}

func pages(t *testing.T, s agent.Store) {
	ctx := t.Context()
	for i := range 5 {
		must(t, s.Create(ctx, New("ten_1", fmt.Sprintf("a%d", i)), none))
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
	newest, err := s.Get(ctx, "ten_1", "a4")
	must(t, err)
	for want, f := range map[int]agent.Filter{5: {From: a.CreatedAt, To: newest.CreatedAt}, 1: {From: newest.CreatedAt}, 0: {From: newest.CreatedAt.Add(time.Microsecond)}} {
		f.Limit, f.Archived = 10, true
		if page, _, err := s.List(ctx, "ten_1", f); err != nil || len(page) < want || want == 0 && len(page) > 0 {
			t.Errorf("%+v has %d agents, %v", f, len(page), err)
		}
	}
	for v := 2; v <= 3; v++ {
		a.Version = v
		must(t, s.Update(ctx, a, none))
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

// empty has a list that allows nothing come back as that, and one that is not there as nil.
func empty(t *testing.T, s agent.Store) {
	ctx, a := t.Context(), New("ten_1", "closed")
	a.Definition.Policy = agent.Policy{Allow: []string{}}
	a.Definition.Servers[0].AllowedTools = []string{}
	must(t, s.Create(ctx, a, none))
	must(t, s.Create(ctx, New("ten_1", "open"), none))
	for slug, closed := range map[string]bool{"closed": true, "open": false} {
		got, err := s.Get(ctx, "ten_1", slug)
		must(t, err)
		allow, tools := got.Definition.Policy.Allow, got.Definition.Servers[0].AllowedTools
		if (allow != nil) != closed || (tools != nil) != closed || len(allow)+len(tools) > 0 {
			t.Errorf("%s has the lists %#v and %#v", slug, allow, tools)
		}
	}
}

// deletion removes an agent with its versions, and frees its slug and what limits count.
func deletion(t *testing.T, s agent.Store) {
	ctx, most := t.Context(), agent.Limits{Agents: 1, Versions: 2}
	a := New("ten_1", "gone")
	must(t, s.Create(ctx, a, most))
	a.Version = 2
	must(t, s.Update(ctx, a, most))
	refused(t, s.Delete(ctx, "ten_2", a.ID), fault.NotFound)
	must(t, s.Delete(ctx, "ten_1", a.ID))
	refused(t, s.Delete(ctx, "ten_1", a.ID), fault.NotFound)
	for _, version := range []int{1, 2} {
		_, err := s.At(ctx, "ten_1", string(a.ID), version)
		refused(t, err, fault.NotFound)
	}
	must(t, s.Create(ctx, New("ten_1", "gone"), most))
}

func limits(t *testing.T, s agent.Store) {
	ctx, most := t.Context(), agent.Limits{Agents: 2, Versions: 4}
	full := func(err error, dimension string) {
		t.Helper()
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Exhausted || f.Dimension != dimension {
			t.Errorf("%v, want the limit %s", err, dimension)
		}
	}
	a := New("ten_1", "a")
	must(t, s.Create(ctx, a, most))
	var wg sync.WaitGroup
	errs := make(chan error, 10)
	for range 10 {
		wg.Go(func() { errs <- s.Create(ctx, New("ten_1", ""), most) })
	}
	wg.Wait()
	made := 0
	for range 10 {
		if err := <-errs; err == nil {
			made++
		} else {
			full(err, agent.DimensionAgents)
		}
	}
	if made != 1 {
		t.Errorf("%d were made where there was room for 1", made)
	}
	must(t, s.Create(ctx, New("ten_2", ""), most)) // has limits of its own
	_, err := s.Archive(ctx, "ten_1", "a")
	must(t, err)
	b := New("ten_1", "b")
	must(t, s.Create(ctx, b, most))
	b.Version = 2
	must(t, s.Update(ctx, b, most))
	b.Version = 3
	full(s.Update(ctx, b, most), agent.DimensionVersions)
	_, err = s.Archive(ctx, "ten_1", "b")
	must(t, err)
	full(s.Create(ctx, New("ten_1", ""), most), agent.DimensionVersions)
}
