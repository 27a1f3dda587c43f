package e2b

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/control/filewatch"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/control/signed"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

const (
	session        = "e2b" // that sandboxes are made in
	defaultTimeout = 300   // seconds
	maxTimeout     = 365 * 24 * 60 * 60
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
func (d *Handlers) on(c *httpapi.Call) (r sandboxes.Ref, sb *sandbox.Sandbox, err error) {
	id := d.known(c.Path("sandbox"))
	unknown := fault.New(fault.NotFound, "Sandbox %.80q was not found", id)
	if !id.Valid() {
		return r, nil, unknown
	}
	r = d.sandboxes.Refer(c.Context(), c.Caller, c.Trail, sandbox.Default, string(id))
	if sb, err = d.sandboxes.Get(c.Context(), r); err != nil {
		return r, nil, err
	}
	if sb.State == sandbox.Destroyed || sb.State == sandbox.Lost {
		return r, nil, unknown
	}
	return r, sb, nil
}

func (d *Handlers) sandboxOf(c *httpapi.Call, sb *sandbox.Sandbox) (Sandbox, error) {
	token, err := d.tokens.Token(c.Caller, sb.ID, signed.ForServices)
	if err != nil {
		return Sandbox{}, err
	}
	traffic, err := d.tokens.Token(c.Caller, sb.ID, signed.ForPorts)
	return Sandbox{
		Template: templateOf(sb), ID: d.hosts.Every(sb.ID), Client: "atoll", Envd: envdVersion, Token: token, Traffic: traffic, Domain: d.hosts.Base().Domain(),
	}, err
}

// seconds reads a timeout.
func seconds(n *int64, otherwise int64) (time.Duration, error) {
	if n == nil {
		n = &otherwise
	}
	if *n < 0 || *n > maxTimeout {
		return 0, httpapi.Invalid("timeout must be 0 to %d seconds", maxTimeout)
	}
	return max(time.Duration(*n)*time.Second, time.Millisecond), nil // 0 elsewhere is the longest there is
}

var idempotencyKey = regexp.MustCompile(`^[a-z0-9-]{1,255}$`)

// nameOf is the name of a new sandbox. Clients that ask again with their key get the one
// that they have made.
func nameOf(c *httpapi.Call) (string, error) {
	key := c.R.Header.Get("Idempotency-Key")
	if key == "" {
		return sandboxes.NewName("e2b-"), nil
	}
	if !idempotencyKey.MatchString(key) {
		return "", httpapi.Invalid("Idempotency-Key must be 1 to 255 lower-case letters, digits and hyphens")
	}
	return sandboxes.NameForKey(c.Caller, "e2b-key-", key), nil
}

func (d *Handlers) create(c *httpapi.Call, in *NewSandbox) (out Sandbox, err error) {
	c.Trail.By(c.Caller, session, in.Template)
	if err := in.refuse(); err != nil {
		return out, err
	}
	timeout, err := seconds(in.Timeout, defaultTimeout)
	if err != nil {
		return out, err
	}
	n := &sandboxes.NewSandbox{Session: new(session), Command: &in.Template, Spec: sandbox.Spec{Env: in.Env, Timeout: timeout, SleepAfter: -1}}
	spec := &n.Spec
	if in.AutoPause != nil && *in.AutoPause {
		spec.Timeout, spec.SleepAfter = 0, timeout
	}
	if len(in.Metadata) > 0 {
		text, err := json.Marshal(in.Metadata)
		if err != nil {
			return out, err
		}
		if spec.Env == nil {
			spec.Env = map[string]string{}
		}
		spec.Env[metadataEnv] = string(text)
	}
	if in.Network.private() {
		if spec.Env == nil {
			spec.Env = map[string]string{}
		}
		spec.Env[privateEnv] = "true"
	}
	switch id := sandbox.SnapshotID(in.Template); {
	case id.Valid():
		spec.Snapshot = id
	case !slices.Contains(anyTemplate, in.Template):
		spec.Image, spec.ImageExact = in.Template, true // E2B's answers have no place for a warning
	}
	if n.Network, err = in.Network.narrowed(in.Internet); err != nil {
		return out, err
	}
	if n.Name, err = nameOf(c); err != nil {
		return out, err
	}
	sb, _, err := d.sandboxes.Create(c.Context(), c.Caller, c.Trail, n)
	if err != nil {
		return out, err
	}
	return d.sandboxOf(c, sb)
}

// anyTemplate are the templates that stand for the image of the key's environment: what
// clients ask for that were told nothing.
var anyTemplate = []string{"", "base", "code-interpreter-v1", "code-interpreter"}

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
	keep, err := d.filterOf(c)
	if err != nil {
		return nil, err
	}
	all, err := d.sandboxes.List(c.Context(), c.Caller, nil)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(sb *sandbox.Sandbox) bool { return sb.State == sandbox.Lost || !keep(sb) })
	slices.SortFunc(all, func(a, b *sandbox.Sandbox) int {
		order := cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
		if c.Text("order") == "asc" {
			return order
		}
		return -order
	})
	return pageOf(c, all, func(sb *sandbox.Sandbox) string { return string(sb.ID) }, d.listedOf)
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

// pageOf is a page of a list, in which X-Next-Token names the last of it.
func pageOf[T, Out any](c *httpapi.Call, all []T, id func(T) string, show func(T) Out) ([]Out, error) {
	limit, err := limitOf(c)
	if err != nil {
		return nil, err
	}
	if after := c.Text("nextToken"); after != "" {
		at := slices.IndexFunc(all, func(v T) bool { return id(v) == after })
		if at < 0 {
			return nil, httpapi.Invalid("nextToken belongs to a list that has changed: start again without it")
		}
		all = all[at+1:]
	}
	if len(all) > limit {
		all = all[:limit]
		c.W.Header().Set("X-Next-Token", id(all[limit-1]))
	}
	return httpapi.Each(all, show), nil
}

// filterOf reads which sandboxes a list is of.
func (d *Handlers) filterOf(c *httpapi.Call) (func(*sandbox.Sandbox) bool, error) {
	var states []string
	if c.Text("state") != "" {
		states = strings.Split(c.Text("state"), ",")
	}
	for _, s := range states {
		if s != "running" && s != "paused" {
			return nil, httpapi.Invalid("state must be running or paused")
		}
	}
	var since time.Time
	if text := c.Text("startedAfter"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, httpapi.Invalid("startedAfter must be a time such as 2026-01-31T12:00:00Z")
		}
	}
	want, err := url.ParseQuery(c.Text("metadata"))
	if err != nil {
		return nil, httpapi.Invalid("metadata must be names and values, URL-encoded")
	}
	labels := map[string]string{}
	for k, values := range want {
		name, failed := url.PathUnescape(k) // clients encode twice
		value, wrong := url.PathUnescape(values[0])
		if failed != nil || wrong != nil {
			return nil, httpapi.Invalid("metadata must be names and values, URL-encoded")
		}
		labels[name] = value
	}
	return func(sb *sandbox.Sandbox) bool {
		l := d.listedOf(sb)
		for k, v := range labels {
			if got, ok := l.Metadata[k]; !ok || got != v {
				return false
			}
		}
		return (len(states) == 0 || slices.Contains(states, l.State)) && (c.Text("template") == "" || c.Text("template") == l.Template) && (since.IsZero() || sb.CreatedAt.After(since))
	}, nil
}
