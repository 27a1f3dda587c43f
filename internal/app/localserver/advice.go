package localserver

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Advice is the next step for a caller that cannot connect to a server.
type Advice struct {
	Text string `json:"text"` // "" for none
	// Refused limits the advice to servers that refuse the connection.
	Refused bool `json:"refused"`
}

// Explain appends the advice to an error of a connection that failed, and returns other errors
// unchanged.
func (a Advice) Explain(err error) error {
	n, ok := errors.AsType[*net.OpError](err)
	if !ok || n.Op != "dial" || a.Text == "" || a.Refused && !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return fmt.Errorf("%w; %s", err, a.Text)
}
