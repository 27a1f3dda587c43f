package sandboxes

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// A ticket stands for a key when a browser, which cannot send an Authorization header with a
// WebSocket, connects to a terminal. It opens one connection to one sandbox, which lasts as long
// as the key is valid. Every server of the installation accepts it.

// Tickets keeps the hashes of unused tickets with what they stand for; *bus.Tickets implements it.
type Tickets interface {
	// Put keeps a value for TicketLife.
	Put(ctx context.Context, hash [sha256.Size]byte, value []byte) error
	// Take removes a value and returns it once. It returns a NotFound fault for an unknown hash.
	Take(ctx context.Context, hash [sha256.Size]byte) ([]byte, error)
}

const (
	// TicketLife is how long a ticket is usable.
	TicketLife = 30 * time.Second

	// Each server counts the tickets that it issued until they expire or are used there.
	maxTickets       = 10_000
	maxTenantTickets = 100 // of one tenant
)

var ticketLength = len(tenant.TicketPrefix) + len(rand.Text())

// Ticket is an unused ticket.
type Ticket struct {
	Text    string
	Expires time.Time
}

// Pass is a redeemed ticket.
type Pass struct {
	Tenant  tenant.ID  `json:"tenant"`
	Key     string     `json:"key"` // id
	Sandbox runtime.ID `json:"sandbox"`
	Expires time.Time  `json:"expires"`
}

// IssueTicket returns a ticket for a terminal of a sandbox. Too many unused tickets are an
// Exhausted fault.
func (s *Service) IssueTicket(ctx context.Context, r Ref) (Ticket, error) {
	sb, err := s.Get(ctx, r)
	if err != nil {
		return Ticket{}, err
	}
	t := Ticket{Expires: time.Now().Add(TicketLife).UTC()}
	t.Text, err = s.issue(ctx, Pass{r.Caller.Tenant.ID, r.Caller.Key.ID, sb.ID, t.Expires})
	return t, err
}

// RedeemTicket uses a ticket up. It returns an Unauthorized fault for an unusable ticket.
func (s *Service) RedeemTicket(ctx context.Context, text string) (Pass, error) {
	if !strings.HasPrefix(text, tenant.TicketPrefix) || len(text) != ticketLength {
		return Pass{}, errTicket // without a question to the bus, which anyone could ask
	}
	hash := sha256.Sum256([]byte(text))
	s.tickets.forget(hash)
	value, err := s.cfg.Tickets.Take(ctx, hash)
	if fault.KindOf(err) == fault.NotFound {
		return Pass{}, errTicket
	}
	if err != nil {
		return Pass{}, err
	}
	var p Pass
	if err := json.Unmarshal(value, &p); err != nil {
		return Pass{}, err
	}
	if !time.Now().Before(p.Expires) {
		return Pass{}, errTicket
	}
	return p, nil
}

// Holder returns the holder of the key that a ticket stands for.
func (s *Service) Holder(ctx context.Context, t Pass) (tenant.Principal, error) {
	return s.cfg.Keys.Holder(ctx, t.Tenant, t.Key)
}

// Admit rejects a ticket that was issued for another sandbox.
func (s *Service) Admit(ctx context.Context, r Ref, t Pass) error {
	sb, err := s.Get(ctx, r)
	if err == nil && sb.ID != t.Sandbox || fault.KindOf(err) == fault.NotFound {
		return errTicket
	}
	return err
}

// issue makes a ticket.
func (s *Service) issue(ctx context.Context, p Pass) (text string, err error) {
	value, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	text = tenant.TicketPrefix + rand.Text()
	hash := sha256.Sum256([]byte(text))
	if err := s.tickets.count(hash, p); err != nil {
		return "", err
	}
	if err := s.cfg.Tickets.Put(ctx, hash, value); err != nil {
		s.tickets.forget(hash)
		return "", err
	}
	return text, nil
}

// errTicket rejects every unusable ticket, whatever the reason.
var errTicket = fault.New(fault.Unauthorized, "the ticket is not valid, was used, or has expired; ask for another")

// issued counts the unused tickets of this server. The zero value has none.
type issued struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]Pass // guarded by mu; by hash
}

// count adds a ticket, unless there are too many.
func (a *issued) count(of [sha256.Size]byte, p Pass) error {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	ofTenant := 0
	for hash, other := range a.open {
		switch {
		case !now.Before(other.Expires):
			delete(a.open, hash)
		case other.Tenant == p.Tenant:
			ofTenant++
		}
	}
	if ofTenant >= maxTenantTickets {
		return fault.Limit("terminal_tickets", now.Add(TicketLife), "a tenant can have %d unused tickets; use one, or wait until they expire", maxTenantTickets)
	}
	if len(a.open) >= maxTickets {
		return fault.New(fault.Unavailable, "there are too many unused tickets; try again in a few seconds")
	}
	if a.open == nil {
		a.open = map[[sha256.Size]byte]Pass{}
	}
	a.open[of] = p
	return nil
}

func (a *issued) forget(hash [sha256.Size]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, hash)
}
