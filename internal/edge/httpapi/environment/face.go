package environment

import "github.com/atoll-run/atoll/internal/edge/httpapi"

// The endpoints below are for other forms of the same environments.

// Make makes an environment.
func (h *Handlers) Make(c *httpapi.Call, in *NewOwnEnvironment) (OwnEnvironment, error) {
	return h.create(c, in)
}

// Find returns the environment that the path names.
func (h *Handlers) Find(c *httpapi.Call) (OwnEnvironment, error) { return h.get(c) }

// Change changes the environment that the path names.
func (h *Handlers) Change(c *httpapi.Call, in *OwnEnvironmentChange) (OwnEnvironment, error) {
	return h.change(c, in)
}

// Remove deletes the environment that the path names.
func (h *Handlers) Remove(c *httpapi.Call) error { return h.delete(c) }

// Page returns the page of environments that a query asks for.
func (h *Handlers) Page(c *httpapi.Call) (httpapi.Page[OwnEnvironment], error) { return h.list(c) }
