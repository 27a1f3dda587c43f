// Package skilltest is the suite that every skill.Store passes.
package skilltest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/test/check"
)

// Bundle is the content of a skill with a script.
func Bundle(t testing.TB, name, description string) *skill.Bundle {
	t.Helper()
	b, err := skill.NewBundle([]skill.File{
		{Path: name + "/SKILL.md", Data: fmt.Appendf(nil, "---\nname: %s\ndescription: %s\nlicense: MIT\nmetadata: {team: a}\n---\nRead references/form.txt.\n", name, description)},
		{Path: name + "/references/form.txt", Data: []byte("Dear customer\n")},
		{Path: name + "/scripts/run.sh", Exec: true, Data: []byte("#!/bin/sh\necho ran\n")},
	})
	must(t, err)
	return b
}

// New returns a skill that is not stored yet.
func New(tenant string) *skill.Skill {
	return &skill.Skill{ID: skill.NewID(), Tenant: tenant, Title: "Reports", Latest: skill.Version{ID: skill.NewVersionID()}}
}

var none skill.Limits

var must = check.Must

// Store checks a store; open makes an empty one.
func Store(t *testing.T, open func(t *testing.T) skill.Store) {
	t.Run("versions", func(t *testing.T) { versions(t, open(t)) })
	t.Run("tenants", func(t *testing.T) { tenants(t, open(t)) })
	t.Run("limits", func(t *testing.T) { limits(t, open(t)) })
	t.Run("races", func(t *testing.T) { races(t, open(t)) })
}

func versions(t *testing.T, s skill.Store) {
	ctx, k, b := t.Context(), New("ten_1"), Bundle(t, "report", "Writes reports.")
	must(t, s.Create(ctx, k, b, none))
	first := k.Latest
	if k.Name != "report" || first.Number != 1 || first.CreatedAt.IsZero() || len(first.Files) != 3 || first.Head.License != "MIT" {
		t.Errorf("created %+v", k)
	}
	again := New("ten_1")
	if err := s.Create(ctx, again, b, none); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a name that is taken: %v", err)
	}
	got, err := s.Content(ctx, "ten_1", first.ID)
	must(t, err)
	if !reflect.DeepEqual(got, b) {
		t.Errorf("content %+v, want %+v", got, b)
	}
	for _, name := range []string{"report", string(k.ID)} {
		found, err := s.Get(ctx, "ten_1", name)
		must(t, err)
		if !reflect.DeepEqual(found, k) {
			t.Errorf("got %+v, want %+v", found, k)
		}
	}
	second := &skill.Skill{ID: k.ID, Tenant: "ten_1", Latest: skill.Version{ID: skill.NewVersionID()}}
	must(t, s.AddVersion(ctx, second, Bundle(t, "report", "Writes better reports."), none))
	if second.Latest.Number != 2 || second.Title != "Reports" || second.Latest.Head.Description != "Writes better reports." {
		t.Errorf("added %+v", second)
	}
	other := &skill.Skill{ID: k.ID, Tenant: "ten_1", Latest: skill.Version{ID: skill.NewVersionID()}}
	if err := s.AddVersion(ctx, other, Bundle(t, "other", "x"), none); fault.KindOf(err) != fault.Invalid {
		t.Errorf("another name: %v", err)
	}
	byNumber, err := s.Numbered(ctx, "ten_1", k.ID, 1)
	must(t, err)
	if byNumber.ID != first.ID || !reflect.DeepEqual(*byNumber, first) {
		t.Errorf("version 1 is %+v, want %+v", byNumber, first)
	}
	page, next, err := s.Versions(ctx, "ten_1", k.ID, skill.Page{Limit: 1})
	must(t, err)
	if len(page) != 1 || page[0].Number != 2 || next == "" {
		t.Errorf("first page %+v, %q", page, next)
	}
	page, next, err = s.Versions(ctx, "ten_1", k.ID, skill.Page{Limit: 1, Cursor: next})
	must(t, err)
	if len(page) != 1 || page[0].Number != 1 || next != "" {
		t.Errorf("last page %+v, %q", page, next)
	}
	must(t, s.DeleteVersion(ctx, "ten_1", k.ID, second.Latest.ID))
	if err := s.DeleteVersion(ctx, "ten_1", k.ID, second.Latest.ID); !errors.Is(err, skill.ErrNoVersion) {
		t.Errorf("deleted twice: %v", err)
	}
	if err := s.DeleteVersion(ctx, "ten_1", k.ID, first.ID); !errors.Is(err, skill.ErrLast) {
		t.Errorf("the last one: %v", err)
	}
	third := &skill.Skill{ID: k.ID, Tenant: "ten_1", Latest: skill.Version{ID: skill.NewVersionID()}}
	must(t, s.AddVersion(ctx, third, b, none))
	if third.Latest.Number != 3 {
		t.Errorf("the number %d is used again", third.Latest.Number)
	}
	archived, err := s.Archive(ctx, "ten_1", k.ID)
	must(t, err)
	if !archived.Archived() {
		t.Error("it is not archived")
	}
	if err := s.AddVersion(ctx, third, b, none); !errors.Is(err, skill.ErrArchived) {
		t.Errorf("a version of an archived skill: %v", err)
	}
	for want, f := range map[int]skill.Filter{0: {Page: skill.Page{Limit: 10}}, 1: {Page: skill.Page{Limit: 10}, Archived: true}} {
		list, _, err := s.List(ctx, "ten_1", f)
		must(t, err)
		if len(list) != want {
			t.Errorf("%+v lists %d", f, len(list))
		}
	}
	must(t, s.Delete(ctx, "ten_1", k.ID))
	if _, err := s.Content(ctx, "ten_1", first.ID); !errors.Is(err, skill.ErrNoVersion) {
		t.Errorf("content of a deleted skill: %v", err)
	}
	must(t, s.Create(ctx, again, b, none)) // its name is free again
}

func tenants(t *testing.T, s skill.Store) {
	ctx, k := t.Context(), New("ten_1")
	must(t, s.Create(ctx, k, Bundle(t, "report", "x"), none))
	theirs := New("ten_2")
	must(t, s.Create(ctx, theirs, Bundle(t, "report", "x"), none))
	_, get := s.Get(ctx, "ten_2", string(k.ID))
	_, version := s.Version(ctx, "ten_2", k.Latest.ID)
	_, numbered := s.Numbered(ctx, "ten_2", k.ID, 1)
	_, content := s.Content(ctx, "ten_2", k.Latest.ID)
	_, _, list := s.Versions(ctx, "ten_2", k.ID, skill.Page{Limit: 1})
	_, archive := s.Archive(ctx, "ten_2", k.ID)
	for what, err := range map[string]error{
		"get": get, "version": version, "numbered": numbered, "content": content, "versions": list, "archive": archive,
		"delete": s.Delete(ctx, "ten_2", k.ID), "delete version": s.DeleteVersion(ctx, "ten_2", k.ID, k.Latest.ID),
		"add": s.AddVersion(ctx, &skill.Skill{ID: k.ID, Tenant: "ten_2", Latest: skill.Version{ID: skill.NewVersionID()}}, Bundle(t, "report", "x"), none),
	} {
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s of another tenant's: %v", what, err)
		}
	}
	page, _, err := s.List(ctx, "ten_2", skill.Filter{Page: skill.Page{Limit: 10}})
	must(t, err)
	if len(page) != 1 || page[0].ID != theirs.ID {
		t.Errorf("lists %+v", page)
	}
}

func limits(t *testing.T, s skill.Store) {
	ctx, k := t.Context(), New("ten_1")
	must(t, s.Create(ctx, k, Bundle(t, "a", "x"), skill.Limits{Skills: 1}))
	if err := s.Create(ctx, New("ten_1"), Bundle(t, "b", "x"), skill.Limits{Skills: 1}); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("one too many: %v", err)
	}
	k.Latest.ID = skill.NewVersionID()
	if err := s.AddVersion(ctx, k, Bundle(t, "a", "y"), skill.Limits{Bytes: 100}); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("too many bytes: %v", err)
	}
}

func races(t *testing.T, s skill.Store) {
	ctx, k := t.Context(), New("ten_1")
	must(t, s.Create(ctx, k, Bundle(t, "a", "x"), none))
	var wg sync.WaitGroup
	var mu sync.Mutex
	numbers := map[int]bool{}
	for range 5 {
		wg.Go(func() {
			v := &skill.Skill{ID: k.ID, Tenant: "ten_1", Latest: skill.Version{ID: skill.NewVersionID()}}
			if err := s.AddVersion(ctx, v, Bundle(t, "a", "x"), none); err != nil {
				t.Error(err)
			}
			mu.Lock()
			numbers[v.Latest.Number] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(numbers) != 5 || !numbers[6] {
		t.Errorf("numbers %v", numbers)
	}
}
