package noderpc_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/infra/noderpc"
	"github.com/atoll-run/atoll/internal/infra/noderpc/noderpctest"
)

// TestIdentity checks that a client cannot use handles of a client with another certificate, even
// with the same random number.
func TestIdentity(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	a := noderpctest.NewAuthority(t)
	l, dial := a.Listen(a.Config("machine"), a.Config("gateway"), "machine")
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	n := noderpc.NewFake()
	go func() { served <- noderpc.NewServer(n, log).Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	mine := noderpc.New(noderpc.Config{Dial: dial, Log: log})
	defer mine.Close()
	h, err := mine.Use(t.Context(), &sandbox.Grant{}, "s", "mine")
	if err != nil {
		t.Fatal(err)
	}

	other := noderpc.New(noderpc.Config{Dial: a.Dial(l, a.Config("other"), "machine"), Log: log})
	other.SetID(mine)
	theirs, err := other.Use(t.Context(), &sandbox.Grant{}, "s", "theirs")
	if err != nil {
		t.Fatal(err)
	}
	if theirs.Sandbox().Name != "theirs" || n.OpenHandles() != 2 {
		t.Errorf("got the handle of %q", theirs.Sandbox().Name)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if _, err := h.Guest().Process(t.Context(), "p"); err != nil {
		t.Error(err)
	}

	stranger := noderpctest.NewAuthority(t)
	foreign := noderpc.New(noderpc.Config{Dial: a.Dial(l, stranger.Config("gateway"), "machine"), Log: log})
	defer foreign.Close()
	if _, err := foreign.Get(t.Context(), &sandbox.Grant{}, "s", "x"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a client of another authority: %v", err)
	}
}
