package e2b

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/control/filewatch"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/control/signed"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

const (
	session        = "e2b" // that sandboxes are made in
	defaultTimeout = 300   // seconds
	maxPage        = 100
)

func (d *Handlers) rest() []httpapi.Operation {
	const (
		get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
		one                 = "/sandboxes/{sandbox}"
	)
	page := []httpapi.Param{
		{Name: "metadata"}, {Name: "state"}, {Name: "order"}, {Name: "startedAfter"}, {Name: "template"}, {Name: "nextToken"}, {Name: "limit"},
	}
	ops := []httpapi.Operation{
		{Method: get, Path: one, Serve: httpapi.Returns(d.get)},
		{Method: del, Path: one, Audit: "sandbox_destroy", Serve: httpapi.Does(d.kill)},
		{Method: post, Path: one + "/timeout", Audit: "sandbox_timeout", Body: &httpapi.Body{JSON: Timeout{}}, Serve: nothingFrom(d.setTimeout)},
		{Method: post, Path: one + "/refreshes", Audit: "sandbox_timeout", Body: &httpapi.Body{JSON: Refresh{}, Optional: true}, Serve: nothingFrom(d.refresh)},
		{Method: put, Path: one + "/network", Audit: "sandbox_network", Body: &httpapi.Body{JSON: Network{}}, Serve: nothingFrom(d.setNetwork)},
		{Method: post, Path: one + "/pause", Audit: "sandbox_sleep", Body: &httpapi.Body{JSON: Pause{}, Optional: true}, Serve: nothingFrom(d.pause)},
		{Method: post, Path: one + "/fork", Audit: "sandbox_fork", Body: &httpapi.Body{JSON: Fork{}, Optional: true}, Serve: created(d.fork)},
		{Method: get, Path: one + "/metrics", Params: []httpapi.Param{{Name: "start"}, {Name: "end"}}, Serve: httpapi.Returns(d.metrics)},
		{Method: post, Path: one + "/snapshots", Audit: "snapshot_create", Body: &httpapi.Body{JSON: KeepSnapshot{}, Optional: true}, Serve: created(d.snapshot)},
		{Method: get, Path: "/snapshots", Params: []httpapi.Param{{Name: "sandboxID"}, {Name: "name"}, {Name: "limit"}, {Name: "nextToken"}}, Serve: httpapi.Returns(d.snapshots)},
		{Method: del, Path: "/templates/{snapshot}", Audit: "snapshot_delete", Serve: httpapi.Does(d.deleteSnapshot)},
	}
	for _, version := range []string{"", "/v2"} {
		ops = append(ops,
			httpapi.Operation{Method: post, Path: version + "/sandboxes", Audit: "sandbox_create", Body: &httpapi.Body{JSON: NewSandbox{}}, Serve: created(d.create)},
			httpapi.Operation{Method: get, Path: version + "/sandboxes", Params: page, Serve: httpapi.Returns(d.list)},
			httpapi.Operation{Method: post, Path: version + one + "/connect", Audit: "sandbox_connect", Body: &httpapi.Body{JSON: Connect{}, Optional: true}, Serve: created(d.connect)},
			httpapi.Operation{Method: post, Path: version + one + "/resume", Audit: "sandbox_connect", Body: &httpapi.Body{JSON: Connect{}, Optional: true}, Serve: created(d.connect)},
		)
	}
	return ops
}

// created serves an operation that takes JSON and answers 201 with JSON.
func created[In, Out any](f func(*httpapi.Call, *In) (Out, error)) httpapi.Endpoint {
	return httpapi.WritesFrom(func(c *httpapi.Call, in *In) error {
		out, err := f(c, in)
		if err != nil {
			return err
		}
		return httpapi.WriteJSON(c.W, http.StatusCreated, out)
	})
}

// nothingFrom serves an operation that takes JSON and answers 204.
func nothingFrom[In any](f func(*httpapi.Call, *In) error) httpapi.Endpoint {
	return httpapi.WritesFrom(func(c *httpapi.Call, in *In) error {
		if err := f(c, in); err != nil {
			return err
		}
		c.W.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// refTo refers to the sandbox of an id, for a request that leaves no audit row of it.
func refTo(c *httpapi.Call, id runtime.ID) sandboxes.Ref {
	return sandboxes.Ref{Caller: c.Caller, Session: sandbox.Default, Name: string(id)}
}

// on finds the sandbox that a request is about. Its name will not do: clients know ids.
func (d *Handlers) on(c *httpapi.Call) (sandboxes.Ref, *sandbox.Sandbox, error) {
	return d.sandboxes.Find(c.Context(), c.Caller, c.Trail, d.known(c.Path("sandbox")))
}

func (d *Handlers) sandboxOf(c *httpapi.Call, sb *sandbox.Sandbox) (Sandbox, error) {
	token, err := d.tokens.Token(c.Caller, sb.ID, signed.ForServices)
	if err != nil {
		return Sandbox{}, err
	}
	traffic, err := d.tokens.Token(c.Caller, sb.ID, signed.ForPorts)
	return Sandbox{
		Template: sandboxes.Template(sb), ID: d.hosts.Every(sb.ID), Client: "atoll", Envd: envdVersion, Token: token, Traffic: traffic, Domain: d.hosts.Base().Domain(),
	}, err
}

func (d *Handlers) create(c *httpapi.Call, in *NewSandbox) (out Sandbox, err error) {
	c.Trail.By(c.Caller, session, in.Template)
	if err := in.refuse(); err != nil {
		return out, err
	}
	timeout, err := sandboxes.Seconds(in.Timeout, defaultTimeout)
	if err != nil {
		return out, err
	}
	network, err := in.Network.narrowed(in.Internet)
	if err != nil {
		return out, err
	}
	sb, err := d.sandboxes.CreateTimed(c.Context(), c.Caller, c.Trail, &sandboxes.NewTimed{
		Session: session, Template: in.Template, Timeout: timeout, Pauses: in.AutoPause != nil && *in.AutoPause, Env: in.Env, Metadata: in.Metadata,
		Private: in.Network.private(), Network: network, Key: c.R.Header.Get("Idempotency-Key"),
	})
	if err != nil {
		return out, err
	}
	return d.sandboxOf(c, sb)
}

// refuse names what of a new sandbox there is not.
func (in *NewSandbox) refuse() error {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"mcp", given(in.MCP)}, {"iam", given(in.IAM)}, {"volumeMounts", given(in.Volumes)},
		{"autoPauseMemory: false", in.AutoPauseMemory != nil && !*in.AutoPauseMemory},
	} {
		if f.set {
			return unsupported("%s is not supported by this server", f.name)
		}
	}
	return nil
}

// given reports whether JSON is there that asks for something.
func given(v []byte) bool {
	text := strings.TrimSpace(string(v))
	return text != "" && text != "null" && text != "[]" && text != "{}"
}

func (d *Handlers) get(c *httpapi.Call) (out Detail, err error) {
	_, sb, err := d.on(c)
	if err != nil {
		return out, err
	}
	token, err := d.tokens.Token(c.Caller, sb.ID, signed.ForServices)
	if err != nil {
		return out, err
	}
	open := !sb.Permissions.Network.Blocked()
	out = Detail{Listed: d.listedOf(sb), Domain: d.hosts.Base().Domain(), Token: token, Internet: &open, Network: networkOf(sb.Permissions.Network), Lifecycle: Lifecycle{OnTimeout: "kill"}}
	if sandboxes.Pauses(sb) {
		out.Lifecycle = Lifecycle{OnTimeout: "pause", AutoResume: true}
	}
	return out, nil
}

func (d *Handlers) kill(c *httpapi.Call) error {
	r, sb, err := d.on(c)
	if err != nil {
		return err
	}
	d.watchers.End(filewatch.Owner{Tenant: c.Caller.Tenant.ID, Sandbox: sb.ID})
	return d.sandboxes.Delete(c.Context(), r)
}

// list lists the sandboxes of the key's environment, including those of other APIs.
func (d *Handlers) list(c *httpapi.Call) ([]Listed, error) {
	q, err := queryOf(c)
	if err != nil {
		return nil, err
	}
	page, more, err := d.sandboxes.Select(c.Context(), c.Caller, q)
	if err != nil {
		return nil, err
	}
	if more {
		c.W.Header().Set("X-Next-Token", string(page[len(page)-1].ID))
	}
	return httpapi.Each(page, d.listedOf), nil
}

// limitOf reads how many entries a page has at the most.
func limitOf(c *httpapi.Call) (int, error) {
	if !c.Has("limit") {
		return maxPage, nil
	}
	n, err := strconv.Atoi(c.Text("limit"))
	if err != nil || n < 1 {
		return 0, httpapi.Invalid("limit must be a number from 1 on")
	}
	return min(n, maxPage), nil
}

// queryOf reads which sandboxes a list is of.
func queryOf(c *httpapi.Call) (*sandboxes.Query, error) {
	q := &sandboxes.Query{Metadata: map[string]string{}, Template: c.Text("template"), Oldest: c.Text("order") == "asc", After: runtime.ID(c.Text("nextToken"))}
	if c.Text("state") != "" {
		for s := range strings.SplitSeq(c.Text("state"), ",") {
			switch s {
			case "running":
				q.Running = true
			case "paused":
				q.Paused = true
			default:
				return nil, httpapi.Invalid("state must be running or paused")
			}
		}
	}
	var err error
	if text := c.Text("startedAfter"); text != "" {
		if q.Since, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, httpapi.Invalid("startedAfter must be a time such as 2026-01-31T12:00:00Z")
		}
	}
	want, err := url.ParseQuery(c.Text("metadata"))
	if err != nil {
		return nil, httpapi.Invalid("metadata must be names and values, URL-encoded")
	}
	for k, values := range want {
		name, failed := url.PathUnescape(k) // clients encode twice
		value, wrong := url.PathUnescape(values[0])
		if failed != nil || wrong != nil {
			return nil, httpapi.Invalid("metadata must be names and values, URL-encoded")
		}
		q.Metadata[name] = value
	}
	q.Limit, err = limitOf(c)
	return q, err
}
