package sandboxes

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TestTickets: each works once, for a short time, and a tenant has so many.
func TestTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all tickets
		issue := func(owner string) string {
			t.Helper()
			text, err := all.issue(Pass{tenant: owner, key: "k", sandbox: "s", expires: time.Now().Add(TicketLife)})
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		first, late := issue("a"), issue("a")
		if got, err := all.redeem(first); err != nil || got.tenant != "a" || got.key != "k" || got.sandbox != "s" {
			t.Errorf("a ticket is %+v, %v", got, err)
		}
		for _, bad := range []string{first, "", tenant.TicketPrefix, late[:len(late)-1]} {
			if _, err := all.redeem(bad); fault.KindOf(err) != fault.Unauthorized {
				t.Errorf("%q: %v", bad, err)
			}
		}
		time.Sleep(TicketLife)
		if _, err := all.redeem(late); fault.KindOf(err) != fault.Unauthorized {
			t.Errorf("an expired ticket: %v", err)
		}
		for range maxTenantTickets {
			issue("a")
		}
		if _, err := all.issue(Pass{tenant: "a", expires: time.Now().Add(TicketLife)}); fault.KindOf(err) != fault.Exhausted {
			t.Errorf("one ticket too many: %v", err)
		}
		issue("b")
		time.Sleep(TicketLife)
		issue("a")
		if len(all.open) != 1 {
			t.Errorf("%d tickets are kept of which one can be used", len(all.open))
		}
	})
}
