package sandboxes

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// A ticket stands for a key when a browser, which cannot send an Authorization header with a
// WebSocket, connects to a terminal. It opens one connection to one sandbox, which lasts as long
// as the key is valid. The server of the sandbox keeps hashes of its tickets in memory, because
// no other server can open the terminal.

const (
	// TicketLife is how long a ticket is usable.
	TicketLife = 30 * time.Second

	maxTickets       = 10_000 // unused at the same time
	maxTenantTickets = 100    // of one tenant
)

// Ticket is an unused ticket.
type Ticket struct {
	Text    string
	Expires time.Time
}

// Pass is a redeemed ticket.
type Pass struct {
	tenant  tenant.ID
	key     string // id
	sandbox runtime.ID
	expires time.Time
}

// IssueTicket returns a ticket for a terminal of a sandbox. Too many unused tickets are an
// Exhausted fault.
func (s *Service) IssueTicket(ctx context.Context, r Ref) (Ticket, error) {
	sb, err := s.Get(ctx, r)
	if err != nil {
		return Ticket{}, err
	}
	t := Ticket{Expires: time.Now().Add(TicketLife).UTC()}
	t.Text, err = s.tickets.issue(Pass{r.Caller.Tenant.ID, r.Caller.Key.ID, sb.ID, t.Expires})
	return t, err
}

// RedeemTicket uses a ticket up. It returns an Unauthorized fault for an unusable ticket.
func (s *Service) RedeemTicket(text string) (Pass, error) { return s.tickets.redeem(text) }

// Holder returns the holder of the key that a ticket stands for.
func (s *Service) Holder(ctx context.Context, t Pass) (tenant.Principal, error) {
	return s.cfg.Keys.Holder(ctx, t.tenant, t.key)
}

// Admit rejects a ticket that was issued for another sandbox.
func (s *Service) Admit(ctx context.Context, r Ref, t Pass) error {
	sb, err := s.Get(ctx, r)
	if err == nil && sb.ID != t.sandbox || fault.KindOf(err) == fault.NotFound {
		return errTicket
	}
	return err
}

// tickets are the unused tickets. The zero value has none.
type tickets struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]Pass // guarded by mu; by hash
}

// issue returns a new ticket.
func (a *tickets) issue(t Pass) (text string, err error) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	ofTenant := 0
	for hash, other := range a.open {
		switch {
		case !now.Before(other.expires):
			delete(a.open, hash)
		case other.tenant == t.tenant:
			ofTenant++
		}
	}
	if ofTenant >= maxTenantTickets {
		return "", fault.Limit("terminal_tickets", now.Add(TicketLife), "a tenant can have %d unused tickets; use one, or wait until they expire", maxTenantTickets)
	}
	if len(a.open) >= maxTickets {
		return "", fault.New(fault.Unavailable, "there are too many unused tickets; try again in a few seconds")
	}
	if a.open == nil {
		a.open = map[[sha256.Size]byte]Pass{}
	}
	text = tenant.TicketPrefix + rand.Text()
	a.open[sha256.Sum256([]byte(text))] = t
	return text, nil
}

// errTicket rejects every unusable ticket, whatever the reason.
var errTicket = fault.New(fault.Unauthorized, "the ticket is not valid, was used, or has expired; ask for another")

// redeem removes a ticket, also an expired one.
func (a *tickets) redeem(text string) (Pass, error) {
	hash := sha256.Sum256([]byte(text))
	a.mu.Lock()
	t, ok := a.open[hash]
	delete(a.open, hash)
	a.mu.Unlock()
	if !ok || !time.Now().Before(t.expires) {
		return Pass{}, errTicket
	}
	return t, nil
}
