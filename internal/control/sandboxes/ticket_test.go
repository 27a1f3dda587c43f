package sandboxes

import (
	"context"
	"crypto/sha256"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// kept keeps tickets as the bus does, without their end.
type kept map[[sha256.Size]byte][]byte

func (k kept) Put(_ context.Context, hash [sha256.Size]byte, value []byte) error {
	k[hash] = value
	return nil
}

func (k kept) Take(_ context.Context, hash [sha256.Size]byte) ([]byte, error) {
	value, ok := k[hash]
	if !ok {
		return nil, fault.New(fault.NotFound, "none")
	}
	delete(k, hash)
	return value, nil
}

// TestTickets checks that each ticket works once, on any server, for a short time, and that a tenant
// has a bounded number of them.
func TestTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := kept{}
		one, two := New(Config{Tickets: shared}), New(Config{Tickets: shared})
		issue := func(owner string) string {
			t.Helper()
			text, err := one.issue(t.Context(), Pass{Tenant: owner, Key: "k", Sandbox: "s", Expires: time.Now().Add(TicketLife)})
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		first, late := issue("a"), issue("a")
		if got, err := two.RedeemTicket(t.Context(), first); err != nil || got.Tenant != "a" || got.Key != "k" || got.Sandbox != "s" {
			t.Errorf("a ticket is %+v, %v", got, err)
		}
		for _, bad := range []string{first, "", tenant.TicketPrefix, late[:len(late)-1]} {
			if _, err := one.RedeemTicket(t.Context(), bad); fault.KindOf(err) != fault.Unauthorized {
				t.Errorf("%q: %v", bad, err)
			}
		}
		time.Sleep(TicketLife)
		if _, err := one.RedeemTicket(t.Context(), late); fault.KindOf(err) != fault.Unauthorized {
			t.Errorf("an expired ticket: %v", err)
		}
		for range maxTenantTickets {
			issue("a")
		}
		before := len(shared)
		if _, err := one.issue(t.Context(), Pass{Tenant: "a", Expires: time.Now().Add(TicketLife)}); fault.KindOf(err) != fault.Exhausted || len(shared) != before {
			t.Errorf("one ticket too many: %v", err)
		}
		issue("b")
		time.Sleep(TicketLife)
		issue("a")
		if len(one.tickets.open) != 1 {
			t.Errorf("%d tickets are counted of which one can be used", len(one.tickets.open))
		}
	})
}
