// Package module starts the modules of a process in the order of their dependencies, and stops them
// in reverse order.
package module

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Module is one row of a process's table.
type Module struct {
	Name  string   // a noun, unique in the table; errors contain it
	Needs []string // names of modules that start before this one and stop after it
	Part  Part
}

// Part does the work of a module.
type Part interface {
	// Start starts the module. It adds the undo of each step to undo right after the step, because
	// the undo also runs if Start fails later.
	Start(ctx context.Context, undo *Undo) error
}

// Undo collects what stops a module.
type Undo struct{ steps []func(context.Context) error }

// Add adds a step. Steps run in reverse order, with the context of Group.Stop.
func (u *Undo) Add(step func(context.Context) error) { u.steps = append(u.steps, step) }

func (u *Undo) run(ctx context.Context) error {
	var errs []error
	for len(u.steps) > 0 {
		last := u.steps[len(u.steps)-1]
		u.steps = u.steps[:len(u.steps)-1]
		errs = append(errs, last(ctx))
	}
	return errors.Join(errs...)
}

// Group is a table of modules in the order in which they start. Start and Stop must not run at the
// same time.
type Group struct {
	modules []Module
	started []*Undo
	current atomic.Pointer[string]
}

// New returns a Group of a table. Modules that do not depend on each other start in the order of the
// table. New fails if a name is used twice, if a module needs one that is not in the table, or if
// modules need each other.
func New(table []Module) (*Group, error) {
	o := order{byName: map[string]Module{}, done: map[string]bool{}}
	for _, m := range table {
		if _, ok := o.byName[m.Name]; ok {
			return nil, fmt.Errorf("two modules have the name %q", m.Name)
		}
		o.byName[m.Name] = m
	}
	for _, m := range table {
		if err := o.visit(m); err != nil {
			return nil, err
		}
	}
	return &Group{modules: o.sorted}, nil
}

// order sorts a table so that each module follows the modules in its Needs.
type order struct {
	byName map[string]Module
	done   map[string]bool
	path   []string // from the first module to the one that is visited
	sorted []Module
}

func (o *order) visit(m Module) error {
	if o.done[m.Name] {
		return nil
	}
	if i := slices.Index(o.path, m.Name); i >= 0 {
		return fmt.Errorf("modules need each other: %s", strings.Join(append(slices.Clone(o.path[i:]), m.Name), " → "))
	}
	o.path = append(o.path, m.Name)
	for _, name := range m.Needs {
		need, ok := o.byName[name]
		if !ok {
			return fmt.Errorf("the module %q needs %q, which is not in the table", m.Name, name)
		}
		if err := o.visit(need); err != nil {
			return err
		}
	}
	o.path = o.path[:len(o.path)-1]
	o.done[m.Name], o.sorted = true, append(o.sorted, m)
	return nil
}

// Names are the names of the modules in the order in which they start.
func (g *Group) Names() []string {
	var names []string
	for _, m := range g.modules {
		names = append(names, m.Name)
	}
	return names
}

// Start starts all modules. If one fails, Start undoes the steps of that module and stops the modules
// before it. The error names the module.
func (g *Group) Start(ctx context.Context) error {
	for i := range g.modules {
		m := &g.modules[i]
		g.current.Store(&m.Name)
		undo := &Undo{}
		g.started = append(g.started, undo)
		if err := m.Part.Start(ctx, undo); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", m.Name, err), g.Stop(context.WithoutCancel(ctx)))
		}
	}
	return nil
}

// Current returns the name of the module that Start began last, "" before the first. It may be called
// at any time.
func (g *Group) Current() string {
	if name := g.current.Load(); name != nil {
		return *name
	}
	return ""
}

// Stop stops the started modules, each after its dependents. It continues after
// errors, and returns all of them. Another call does nothing.
func (g *Group) Stop(ctx context.Context) error {
	var errs []error
	for len(g.started) > 0 {
		last := g.started[len(g.started)-1]
		g.started = g.started[:len(g.started)-1]
		errs = append(errs, last.run(ctx))
	}
	return errors.Join(errs...)
}
