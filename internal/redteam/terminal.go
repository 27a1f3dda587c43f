package redteam

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// terminalCases open terminals that are not the caller's to open.
func terminalCases() []Case {
	return []Case{
		{"terminal/no-key", Critical, "opens a terminal without a key, and with one in the URL", "it is refused", terminalNoKey},
		{"terminal/foreign", Critical, "opens a terminal in the victim's sandbox", "the answer is that for a sandbox that never was", terminalForeign},
		{"terminal/origin", High, "opens a terminal as a page of another origin does", "it is refused", terminalOrigin},
		{"terminal/tickets", Critical, "uses a ticket twice, for another sandbox, cut and made up", "a ticket opens its sandbox once", terminalTickets},
	}
}

// handshake asks for a WebSocket, and closes what it is given.
func (a *arena) handshake(ctx context.Context, path, key, more string) (*answer, error) {
	head := "GET " + path + " HTTP/1.1\r\nHost: " + a.base.Host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: cmVkdGVhbSByZWR0ZWFtIQ==\r\n" + more
	if key != "" {
		head += "Authorization: Bearer " + key + "\r\n"
	}
	return raw(ctx, a.base, head+"\r\n")
}

func terminalNoKey(ctx context.Context, a *arena) error {
	s, err := a.theBox(ctx)
	if err != nil {
		return err
	}
	for _, query := range []string{"", "?key=" + a.plain.key, "?token=" + a.plain.key, "?access_token=" + a.plain.key, "?ticket=" + a.plain.key, "?ticket="} {
		got, err := a.handshake(ctx, s.path("/terminal")+query, "", "")
		if err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 {
			return found("a terminal without a key: status %d", got.Status)
		}
	}
	return nil
}

func terminalForeign(ctx context.Context, a *arena) error {
	p, err := a.thePrey(ctx)
	if err != nil {
		return err
	}
	none := never(p["sandbox"])
	for _, query := range []string{"", "?process=" + p["process"], "?command=id"} {
		real, err := a.handshake(ctx, "/v1/sandboxes/"+p["sandbox"]+"/terminal"+query, a.plain.key, "")
		if err != nil {
			return err
		}
		unknown, err := a.handshake(ctx, "/v1/sandboxes/"+none+"/terminal"+query, a.plain.key, "")
		if err != nil {
			return err
		}
		if err := alike("the terminal"+query, real, unknown, p["sandbox"], none); err != nil {
			return err
		}
		if real.Status == http.StatusSwitchingProtocols {
			return found("a terminal in the victim's sandbox was opened")
		}
	}
	return nil
}

func terminalOrigin(ctx context.Context, a *arena) error {
	s, err := a.theBox(ctx)
	if err != nil {
		return err
	}
	for _, origin := range []string{"https://evil.example", "null", "http://" + a.base.Hostname() + ".evil.example"} {
		got, err := a.handshake(ctx, s.path("/terminal"), a.plain.key, "Origin: "+origin+"\r\n")
		if err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 {
			return found("a terminal from %s: %s", origin, got)
		}
	}
	return nil
}

func terminalTickets(ctx context.Context, a *arena) error {
	s, err := a.theBox(ctx)
	if err != nil {
		return err
	}
	other, err := a.theWire(ctx)
	if err != nil {
		return err
	}
	ask := func() (string, error) {
		var t struct{ Ticket string }
		err := s.by.must(ctx, http.MethodPost, s.path("/terminal/ticket"), nil, &t)
		if err == nil && len(t.Ticket) < 20 {
			err = fmt.Errorf("a ticket of %d characters", len(t.Ticket))
		}
		return t.Ticket, err
	}
	open := func(s sandbox, ticket string) (*answer, error) {
		return a.handshake(ctx, s.path("/terminal")+"?command=true&ticket="+url.QueryEscape(ticket), "", "")
	}
	ticket, err := ask()
	if err != nil {
		return err
	}
	foreign, err := ask()
	if err != nil {
		return err
	}
	first, err := open(s, ticket)
	if err != nil {
		return err
	}
	if first.Status != http.StatusSwitchingProtocols {
		return fmt.Errorf("a ticket as it was given: %s", first)
	}
	for what, try := range map[string]struct {
		in     sandbox
		ticket string
	}{
		"that was used": {s, ticket}, "of another sandbox": {other, foreign}, "that is cut": {s, foreign[:len(foreign)-1]}, "that was never given": {s, "tkt-atoll-" + token(20)},
	} {
		got, err := open(try.in, try.ticket)
		if err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 {
			return found("a ticket %s: %s", what, got)
		}
	}
	return nil
}
