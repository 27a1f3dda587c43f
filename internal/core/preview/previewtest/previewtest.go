// Package previewtest is the suite that every preview.Store passes.
package previewtest

import (
	"bytes"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Opened is a store.
type Opened struct {
	preview.Store
	Sandbox func(t *testing.T) runtime.ID // makes a sandbox that can have previews
}

// Store runs the suite. open returns an empty store.
func Store(t *testing.T, open func(t *testing.T) Opened) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s Opened)
	}{
		{"a port is opened once", testOnce},
		{"they are found and listed", testFind},
		{"a closed one is gone", testClose},
		{"a sandbox has so many", testMost},
		{"any number at once open one", testRace},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func record(id runtime.ID, port uint16, fill byte) preview.Record {
	return preview.Record{Sandbox: id, Port: port, Seed: bytes.Repeat([]byte{fill}, preview.SeedSize), Hash: bytes.Repeat([]byte{fill}, preview.HashSize)}
}

func add(t *testing.T, s preview.Store, r preview.Record) *preview.Record {
	t.Helper()
	got, err := s.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func testOnce(t *testing.T, s Opened) {
	id := s.Sandbox(t)
	first := add(t, s, record(id, 80, 1))
	if first.CreatedAt.IsZero() || first.Sandbox != id || first.Port != 80 || first.Seed[0] != 1 || first.Hash[0] != 1 {
		t.Errorf("%+v", first)
	}
	if again := add(t, s, record(id, 80, 2)); again.Seed[0] != 1 || again.Hash[0] != 1 || !again.CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("the second time it is %+v", again)
	}
}

func testFind(t *testing.T, s Opened) {
	id, other := s.Sandbox(t), s.Sandbox(t)
	add(t, s, record(id, 8000, 1))
	add(t, s, record(id, 80, 2))
	add(t, s, record(other, 80, 3))
	got, err := s.Find(t.Context(), record(id, 80, 2).Hash)
	if err != nil || got.Sandbox != id || got.Port != 80 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Find(t.Context(), record(id, 80, 9).Hash); fault.KindOf(err) != fault.NotFound || err == nil {
		t.Errorf("an unknown hash: %v", err)
	}
	all, err := s.List(t.Context(), id)
	if err != nil || len(all) != 2 || all[0].Port != 80 || all[1].Port != 8000 {
		t.Errorf("%+v, %v", all, err)
	}
}

func testClose(t *testing.T, s Opened) {
	id, other := s.Sandbox(t), s.Sandbox(t)
	for i, port := range []uint16{1, 2, 3} {
		add(t, s, record(id, port, byte(i)))
	}
	add(t, s, record(other, 1, 9))
	if err := s.Close(t.Context(), id, 2); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context(), id, 2); fault.KindOf(err) != fault.NotFound || err == nil {
		t.Errorf("closing it twice: %v", err)
	}
	if _, err := s.Find(t.Context(), record(id, 2, 1).Hash); err == nil {
		t.Error("a closed one is found")
	}
	if left, err := s.List(t.Context(), other); err != nil || len(left) != 1 {
		t.Errorf("another's: %+v, %v", left, err)
	}
}

func testMost(t *testing.T, s Opened) {
	id := s.Sandbox(t)
	for i := range preview.MaxPreviews {
		add(t, s, record(id, uint16(i+1), byte(i)))
	}
	if _, err := s.Open(t.Context(), record(id, 9999, 200)); fault.KindOf(err) != fault.Exhausted || err == nil {
		t.Errorf("one more: %v", err)
	}
	add(t, s, record(id, 1, 201)) // is there already
	if all, err := s.List(t.Context(), id); err != nil || len(all) != preview.MaxPreviews {
		t.Errorf("%d, %v", len(all), err)
	}
}

func testRace(t *testing.T, s Opened) {
	id := s.Sandbox(t)
	var all sync.WaitGroup
	seeds := make([]byte, 16)
	for i := range seeds {
		all.Go(func() {
			r, err := s.Open(t.Context(), record(id, 80, byte(i+1)))
			if err != nil {
				t.Error(err)
				return
			}
			seeds[i] = r.Seed[0]
		})
	}
	all.Wait()
	for _, seed := range seeds {
		if seed != seeds[0] {
			t.Fatalf("they got %v", seeds)
		}
	}
}
