package sandbox

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// A ticket stands for a key when a browser, which cannot send an Authorization header with
// a WebSocket, connects to a terminal. It opens one connection to one sandbox, which lasts
// as long as the key may. The server that has the sandbox remembers its tickets as hashes,
// in memory: no other server could open the terminal.

const (
	ticketParam  = "ticket"
	ticketPrefix = tenant.TicketPrefix

	// TicketLife is how long a ticket can be used.
	TicketLife = 30 * time.Second
	// maxTickets bounds how many can be used at a time, and maxTenantTickets those of a tenant.
	maxTickets       = 10_000
	maxTenantTickets = 100
)

// TerminalTicket opens one WebSocket to a terminal.
type TerminalTicket struct {
	Ticket    string    `json:"ticket" doc:"Give it as ticket in the query of the WebSocket's URL. It works once."`
	ExpiresAt time.Time `json:"expires_at" doc:"In 30 seconds. A connection that is open then stays."`
}

// ticket is what one allows.
type ticket struct {
	tenant  tenant.ID
	key     string // its id
	sandbox runtime.ID
	expires time.Time
}

// tickets are those that were not used yet. The zero value has none.
type tickets struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]ticket // guarded by mu; by hash
}

// issue returns a new ticket.
func (a *tickets) issue(t ticket) (text string, err error) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	theirs := 0
	for hash, other := range a.open {
		switch {
		case !now.Before(other.expires):
			delete(a.open, hash)
		case other.tenant == t.tenant:
			theirs++
		}
	}
	if theirs >= maxTenantTickets {
		return "", fault.Limit("terminal_tickets", now.Add(TicketLife), "a tenant can have %d unused tickets; use one, or wait until they expire", maxTenantTickets)
	}
	if len(a.open) >= maxTickets {
		return "", fault.New(fault.Unavailable, "there are too many unused tickets; try again in a few seconds")
	}
	if a.open == nil {
		a.open = map[[sha256.Size]byte]ticket{}
	}
	text = ticketPrefix + rand.Text()
	a.open[sha256.Sum256([]byte(text))] = t
	return text, nil
}

// errTicket refuses every ticket that cannot be used, whatever the reason.
var errTicket = fault.New(fault.Unauthorized, "the ticket is not valid, was used, or has expired; ask for another")

// redeem uses a ticket up, right or wrong.
func (a *tickets) redeem(text string) (ticket, error) {
	hash := sha256.Sum256([]byte(text))
	a.mu.Lock()
	t, ok := a.open[hash]
	delete(a.open, hash)
	a.mu.Unlock()
	if !ok || !time.Now().Before(t.expires) {
		return ticket{}, errTicket
	}
	return t, nil
}

func (h *Handlers) ticketOperation() httpapi.Operation {
	return httpapi.Operation{
		Method: http.MethodPost, Path: sandboxPath + "/terminal/ticket", ID: "createTerminalTicket", Summary: "Make a ticket for a browser's terminal", Audit: "terminal_ticket",
		Description: "Browsers cannot send a key with a WebSocket. Ask for a ticket where the key is, and have the page connect to the terminal with it.",
		Params:      onOne(), Answers: []httpapi.Answer{httpapi.Created(TerminalTicket{}, "It opens one connection to this sandbox.")}, Serve: httpapi.Returns(h.createTicket),
	}
}

func (h *Handlers) createTicket(c *httpapi.Call) (out TerminalTicket, err error) {
	sb, err := h.find(c)
	if err != nil {
		return out, err
	}
	out.ExpiresAt = time.Now().Add(TicketLife).UTC()
	out.Ticket, err = h.tickets.issue(ticket{c.Caller.Tenant.ID, c.Caller.Key.ID, sb.ID, out.ExpiresAt})
	return out, err
}

// authorizeTerminal finds the caller by a key or by a ticket, and the sandbox.
func (h *Handlers) authorizeTerminal(c *httpapi.Call) (p place, err error) {
	if !c.Has(ticketParam) {
		if err := c.Authorize(tenant.ScopeSandboxes); err != nil {
			return p, err
		}
		return h.place(c)
	}
	t, err := h.tickets.redeem(c.Text(ticketParam))
	if err != nil {
		return p, err
	}
	if err := c.AuthorizeBy(tenant.ScopeSandboxes, func(ctx context.Context) (tenant.Principal, error) {
		return h.Keys.Holder(ctx, t.tenant, t.key)
	}); err != nil {
		return p, err
	}
	if p, err = h.place(c); err != nil {
		return p, err
	}
	sb, err := h.Sandboxes.Get(c.Context(), c.Caller, p.session, p.name)
	if err == nil && sb.ID != t.sandbox || fault.KindOf(err) == fault.NotFound {
		err = errTicket
	}
	return p, err
}
