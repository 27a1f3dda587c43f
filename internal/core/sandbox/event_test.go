package sandbox_test

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
)

var at = time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC)

// full is a record with a value in each field that is recorded.
func full(t *testing.T) *sandbox.Sandbox {
	s := &sandbox.Sandbox{
		ID: "sb-0123456789abcdef", Tenant: "ten_1", Environment: "env_1", Session: "of \"mine\" é", Name: "one", Key: "key_1", Executor: "exe_1",
		Image: "default", ImageAlias: "node:22", ImageWarning: "w", Limits: runtime.DefaultLimits(), Own: sandbox.Size{CPU: 1, Memory: 2, Disk: 3}, Disk: 4,
		Connected: true, Mounts: []storage.Mount{{Slug: "team", Connection: "con_1", Kind: storage.S3, Path: "a/b", ReadOnly: true}},
		Env: map[string]string{"A": "secret enough", "B": ""}, State: sandbox.Sleeping, Sleep: sandbox.Stored,
		Stored: &sandbox.StoredCopy{State: "0123456789abcdef", Bytes: 1, Disk: 1, Checkpoint: true, Kernel: "k", Image: "i"}, Detail: "d",
		SleepAfter: -1, CreatedAt: at, UsedAt: at.Add(1), ExpiresAt: new(at.Add(time.Hour)), MeteredAt: at.Add(2),
		Endings: []sandbox.Ending{{From: at, Until: at.Add(1), Reason: "r", Dimension: "d"}, {From: at, Reason: "r"}}, Revision: 7,
	}
	s.Permissions = runtime.Permissions{
		Network:    runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"*.example.com"}, AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, BlockedPorts: []uint16{25}},
		Filesystem: runtime.FilesystemPolicy{Writable: []string{}},
	}
	for f, v := range reflect.ValueOf(*s).Fields() {
		if v.IsZero() && f.Name != "UnusedUntil" { // which no record has
			t.Fatalf("the test sets no %s", f.Name)
		}
	}
	return s
}

func TestRecordIsReadAgain(t *testing.T) {
	s := full(t)
	b, err := sandbox.EncodeRecord(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := sandbox.DecodeRecord(b)
	if err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v, %v, want\n%+v", got, err, s)
	}
}

func TestEventIsReadAgain(t *testing.T) {
	s := full(t)
	saved := &sandbox.Sandbox{}
	saved.CopySaved(s)
	for _, e := range []sandbox.Event{
		{Save: saved}, {Endings: s.Endings}, {Discard: true},
		{Charge: &sandbox.Charge{From: at, Until: at.Add(1), CPU: 0.5, Memory: 1, BytesOut: 2}},
		{Contact: &sandbox.Contact{From: at, Until: at, Hosts: []string{"a", "b:443"}}},
	} {
		e.Journal, e.Sandbox = "jrn_1", s.ID
		b, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := sandbox.DecodeEvent(b)
		if err != nil || !reflect.DeepEqual(got, &e) {
			t.Errorf("%+v, %v, want\n%+v", got, err, e)
		}
		if bytes.Contains(b, []byte("secret enough")) {
			t.Error("an event has the variables of programs")
		}
	}
	s.Mounts[0].SecretAccessKey = "a credential"
	if b, err := (&sandbox.Event{Journal: "j", Sandbox: s.ID, Save: s}).Encode(); err != nil || bytes.Contains(b, []byte("secret enough")) || bytes.Contains(b, []byte("a credential")) {
		t.Errorf("an event has secrets: %s, %v", b, err)
	}
}

// FuzzDecodeEvent: a decoded event is valid, and the same when it is encoded again.
func FuzzDecodeEvent(f *testing.F) {
	t := &testing.T{}
	s := full(t)
	for _, e := range []sandbox.Event{
		{Save: s}, {Endings: s.Endings}, {Discard: true},
		{Charge: &sandbox.Charge{From: at, Until: at.Add(1), CPU: 0.5, Memory: 1, BytesOut: 2}},
		{Contact: &sandbox.Contact{From: at, Until: at, Hosts: []string{"a", "b:443"}}},
	} {
		e.Journal, e.Sandbox = "jrn_1", s.ID
		b, err := e.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"journal":"j","sandbox":"sb-0123456789abcdef","charge":{"cpu":1e999}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := sandbox.DecodeEvent(b)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%v", err)
			}
			return
		}
		again, err := e.Encode()
		if err != nil {
			if len(b) > sandbox.MaxEvent/8 {
				return // escapes can make it longer
			}
			t.Fatalf("a decoded event cannot be encoded: %v", err)
		}
		if e2, err := sandbox.DecodeEvent(again); err != nil || !equal(e, e2) {
			t.Errorf("%+v, %v, want %+v", e2, err, e)
		}
	})
}

// equal compares events by their encoding, as times can differ in their zones.
func equal(a, b *sandbox.Event) bool {
	x, err1 := a.Encode()
	y, err2 := b.Encode()
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}
