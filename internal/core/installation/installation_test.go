package installation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/installation"
)

// records are the entries of other servers, each look at which takes a second.
type records struct {
	others []installation.Seen
	alive  bool // the others renew their entries
	looks  int
	beats  int
	left   int
}

func (r *records) ID(context.Context) (string, error) { return "ins_1", nil }
func (r *records) Members(context.Context, string) ([]installation.Seen, error) {
	r.looks++
	var all []installation.Seen
	for _, o := range r.others {
		o.Age += time.Duration(r.looks) * installation.DeadAfter / 2
		if r.alive && r.looks > 1 {
			o.Age = 0
		}
		all = append(all, o)
	}
	return all, nil
}
func (r *records) Beat(context.Context, installation.Member) error { r.beats++; return nil }
func (r *records) Leave(context.Context, string) error             { r.left++; return nil }

func TestJoin(t *testing.T) {
	shared := installation.Member{Executor: "exe_1", Host: "one", Bus: "bus", Blobs: "bkt_1", Volumes: "bkt_2"}
	other := shared
	other.Executor, other.Host = "exe_2", "two"
	for name, c := range map[string]struct {
		change func(m *installation.Member)
		want   []string // in the error; none: it joins
	}{
		"shares everything": {func(*installation.Member) {}, nil},
		"its own bus":       {func(m *installation.Member) { m.Bus = "" }, []string{`"exe_2"`, `"two"`, "nats (not set on this server)", "set nats, blobs and volumes"}},
		"another bus":       {func(m *installation.Member) { m.Bus = "other" }, []string{"nats (the servers use different ones)"}},
		"its own stores":    {func(m *installation.Member) { m.Blobs, m.Volumes = "", "" }, []string{"blobs (not set on this server), volumes (not set on this server)"}},
		"another bucket":    {func(m *installation.Member) { m.Blobs = "bkt_9" }, []string{"blobs (the servers use different ones)"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := shared
			c.change(&m)
			r := &records{others: []installation.Seen{{Member: other}}, alive: true}
			err := installation.Join(t.Context(), r, m)
			if len(c.want) == 0 {
				if err != nil || r.beats != 1 || r.left != 0 {
					t.Errorf("%v; %+v", err, r)
				}
				return
			}
			if err == nil || r.beats != 0 {
				t.Fatalf("it joined: %v, %+v", err, r)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("it does not say %q: %v", want, err)
				}
			}
			// A server that is gone keeps no other out.
			gone := &records{others: []installation.Seen{{Member: other}}}
			if err := installation.Join(t.Context(), gone, m); err != nil || gone.beats != 1 {
				t.Errorf("beside a server that is gone: %v, %+v", err, gone)
			}
		})
	}
	if err := other.Fits(installation.Member{Bus: "bus", Blobs: "bkt_1"}); err == nil || !strings.Contains(err.Error(), "volumes (not set on the other server)") {
		t.Error(err)
	}
}
