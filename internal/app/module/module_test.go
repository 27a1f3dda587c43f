package module

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// recorder is a Part that records its steps.
type recorder struct {
	name  string
	steps *[]string
	fails bool
}

func (r recorder) Start(_ context.Context, undo *Undo) error {
	for _, step := range []string{"1", "2"} {
		*r.steps = append(*r.steps, "+"+r.name+step)
		undo.Add(func(ctx context.Context) error {
			*r.steps = append(*r.steps, "-"+r.name+step)
			return ctx.Err()
		})
		if r.fails {
			return errors.New("no room")
		}
	}
	return nil
}

// table returns modules that are written as "name: need need".
func table(steps *[]string, rows ...string) []Module {
	var out []Module
	for _, row := range rows {
		name, needs, _ := strings.Cut(row, ":")
		out = append(out, Module{Name: name, Needs: strings.Fields(needs), Part: recorder{name, steps, strings.HasPrefix(name, "bad")}})
	}
	return out
}

func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		rows []string
		want string // the order, or the error
	}{
		"as in the table":    {[]string{"c", "a", "b"}, "c a b"},
		"dependencies first": {[]string{"http: gateway jobs", "jobs: records", "gateway: records bus", "bus", "records"}, "records bus gateway jobs http"},
		"diamond":            {[]string{"a", "d: b c", "c: a", "b: a"}, "a b c d"},
		"unknown":            {[]string{"a", "b: a x"}, `the module "b" needs "x", which is not in the table`},
		"cycle":              {[]string{"z: a", "a: b", "b: c", "c: a"}, "modules need each other: a → b → c → a"},
		"itself":             {[]string{"a: a"}, "modules need each other: a → a"},
		"twice":              {[]string{"a", "b", "a"}, `two modules have the name "a"`},
		"empty":              {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := New(table(nil, c.rows...))
			var got string
			if err != nil {
				got = err.Error()
			} else {
				got = strings.Join(g.Names(), " ")
			}
			if got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}

func TestStopReversesStart(t *testing.T) {
	var steps []string
	g, err := New(table(&steps, "b: a", "a"))
	if err != nil {
		t.Fatal(err)
	}
	if g.Current() != "" {
		t.Errorf("%q starts before Start", g.Current())
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g.Current() != "b" {
		t.Errorf("%q started last", g.Current())
	}
	spent, cancel := context.WithCancel(t.Context())
	cancel()
	err = g.Stop(spent)
	if n := strings.Count(err.Error(), "canceled"); n != 4 {
		t.Errorf("%d of 4 errors: %v", n, err)
	}
	if err := g.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if want := []string{"+a1", "+a2", "+b1", "+b2", "-b2", "-b1", "-a2", "-a1"}; !slices.Equal(steps, want) {
		t.Errorf("%v, not %v", steps, want)
	}
}

func TestFailedStartIsUndone(t *testing.T) {
	var steps []string
	g, err := New(table(&steps, "a", "bad: a", "c"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the undo must not depend on it
	if err := g.Start(ctx); err == nil || err.Error() != "bad: no room" {
		t.Errorf("error %v", err)
	}
	if g.Current() != "bad" {
		t.Errorf("%q failed", g.Current())
	}
	if want := []string{"+a1", "+a2", "+bad1", "-bad1", "-a2", "-a1"}; !slices.Equal(steps, want) {
		t.Errorf("%v, not %v", steps, want)
	}
}
