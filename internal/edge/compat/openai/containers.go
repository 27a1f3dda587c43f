package openai

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) create(c *httpapi.Call, in *NewContainer) error {
	s := container.Settings{Name: *in.Name, Minutes: container.DefaultMinutes}
	c.Trail.By(c.Caller, container.Session, s.Name)
	if e := in.ExpiresAfter; e != nil {
		if *e.Minutes < 1 || *e.Minutes > container.MaxMinutes {
			return httpapi.Invalid("expires_after.minutes must be between 1 and %d", container.MaxMinutes)
		}
		s.Minutes = int(*e.Minutes)
	}
	memory, network, err := in.Domain("", &c.Caller.Environment)
	if err != nil {
		return err
	}
	if err := c.Draining(); err != nil {
		return err
	}
	spec, err := s.Spec(c.Caller)
	if err != nil {
		return err
	}
	spec.Memory, spec.Network = memory, network
	sb, _, err := h.Sandboxes.Sandboxes.Ensure(c.Context(), c.Caller, container.Session, container.NewName(), spec)
	if err != nil {
		return err
	}
	c.Trail.On(sb)
	return httpapi.WriteJSON(c.W, http.StatusOK, containerOf(sb, s))
}

func errUnknown(c *httpapi.Call) error {
	return fault.New(fault.NotFound, "container %.80q not found", c.Path("container_id"))
}

// find finds the container that a request is about, also one that has expired.
func (h *Handlers) find(c *httpapi.Call) (*sandbox.Sandbox, container.Settings, error) {
	id, ok := container.ID(c.Path("container_id")).Sandbox()
	if !ok {
		return nil, container.Settings{}, errUnknown(c)
	}
	sb, err := h.Sandboxes.Sandboxes.Get(c.Context(), c.Caller, container.Session, string(id))
	if fault.KindOf(err) == fault.NotFound && err != nil {
		return nil, container.Settings{}, errUnknown(c)
	}
	if err != nil {
		return nil, container.Settings{}, err
	}
	s, ok := container.Of(sb)
	if !ok {
		return nil, s, errUnknown(c)
	}
	h.Sandboxes.At(c, container.Session, string(id))
	return sb, s, nil
}

func (h *Handlers) get(c *httpapi.Call) (out Container, err error) {
	sb, s, err := h.find(c)
	if err != nil {
		return out, err
	}
	return containerOf(sb, s), nil
}

func (h *Handlers) delete(c *httpapi.Call) (out DeletedContainer, err error) {
	sb, _, err := h.find(c)
	if err != nil {
		return out, err
	}
	if err := h.Sandboxes.Sandboxes.Destroy(c.Context(), c.Caller, container.Session, string(sb.ID)); err != nil {
		return out, err
	}
	return DeletedContainer{ID: c.Path("container_id"), Object: "container.deleted", Deleted: true}, nil
}

func (h *Handlers) list(c *httpapi.Call) (out ContainerList, err error) {
	found, err := h.Sandboxes.Sandboxes.List(c.Context(), c.Caller, container.Session)
	if err != nil {
		return out, err
	}
	slices.SortFunc(found, func(a, b *sandbox.Sandbox) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	all := []Container{}
	for _, sb := range found {
		if s, ok := container.Of(sb); ok && (!c.Has("name") || s.Name == c.Text("name")) {
			all = append(all, containerOf(sb, s))
		}
	}
	out.Object = "list"
	out.Data, out.FirstID, out.LastID, out.HasMore, err = pageOf(c, all, func(one *Container) *string { return &one.ID })
	return out, err
}

// pageOf is the page that the query asks for of a list, oldest first.
func pageOf[T any](c *httpapi.Call, all []T, id func(*T) *string) (page []T, first, last *string, more bool, err error) {
	if c.Text("order") != "asc" {
		slices.Reverse(all)
	}
	if after := c.Text("after"); after != "" {
		at := slices.IndexFunc(all, func(one T) bool { return *id(&one) == after })
		if at < 0 {
			return nil, nil, nil, false, httpapi.Invalid("after names no entry of this list")
		}
		all = all[at+1:]
	}
	if limit := int(c.Int("limit")); len(all) > limit {
		all, more = all[:limit], true
	}
	if n := len(all); n > 0 {
		first, last = id(&all[0]), id(&all[n-1])
	}
	return all, first, last, more, nil
}
