package daemonclient

import "github.com/atoll-run/atoll/internal/core/process"

// Cut ends the conversation as a host does that is killed: without a word.
func (c *Client) Cut() {
	c.mu.Lock()
	if c.err == nil {
		c.err = process.ErrGone
	}
	c.mu.Unlock()
	c.listener.Close()
	c.first.Close()
	c.wait.Wait()
}
