package openai

import (
	"net/http"
	"slices"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) create(c *httpapi.Call, in *NewContainer) error {
	s := container.Settings{Name: *in.Name, Minutes: container.DefaultMinutes}
	c.Trail.By(c.Caller, container.Session, s.Name)
	if e := in.ExpiresAfter; e != nil {
		if err := sandboxes.CheckMinutes(*e.Minutes); err != nil {
			return err
		}
		s.Minutes = int(*e.Minutes)
	}
	memory, network, err := in.Domain("", &c.Caller.Environment)
	if err != nil {
		return err
	}
	made, err := h.Sandboxes.CreateContainer(c.Context(), c.Caller, c.Trail, s, memory, network)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(c.W, http.StatusOK, containerOf(made))
}

// find finds the container that a request is about, also one that has expired.
func (h *Handlers) find(c *httpapi.Call) (sandboxes.Ref, *sandboxes.Container, error) {
	return h.Sandboxes.GetContainer(c.Context(), c.Caller, c.Trail, container.ID(c.Path("container_id")))
}

func (h *Handlers) get(c *httpapi.Call) (out Container, err error) {
	_, found, err := h.find(c)
	if err != nil {
		return out, err
	}
	return containerOf(found), nil
}

func (h *Handlers) delete(c *httpapi.Call) (out DeletedContainer, err error) {
	r, _, err := h.find(c)
	if err != nil {
		return out, err
	}
	if err := h.Sandboxes.Delete(c.Context(), r); err != nil {
		return out, err
	}
	return DeletedContainer{ID: c.Path("container_id"), Object: "container.deleted", Deleted: true}, nil
}

func (h *Handlers) list(c *httpapi.Call) (out ContainerList, err error) {
	found, err := h.Sandboxes.Containers(c.Context(), c.Caller)
	if err != nil {
		return out, err
	}
	all := []Container{}
	for i := range found {
		if !c.Has("name") || found[i].Settings.Name == c.Text("name") {
			all = append(all, containerOf(&found[i]))
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
	page, more, err = httpapi.After(all, c.Text("after"), int(c.Int("limit")), func(one *T) string { return *id(one) }, "entry of this list")
	if n := len(page); n > 0 {
		first, last = id(&page[0]), id(&page[n-1])
	}
	return page, first, last, more, err
}
