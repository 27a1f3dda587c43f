package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/egress"
	"github.com/atoll-run/atoll/internal/node/netns"
	"github.com/atoll-run/atoll/internal/node/warm"
)

// Network is what sandboxes with a network get from the operator.
type Network struct {
	Egress egress.Config
	Env    map[string]string // variables of their programs; an environment's own win
	Files  map[string][]byte // that these variables name, of the guest's folder
}

// networks is a runtime whose sandboxes have a network. The policy is set when a
// sandbox is claimed; until then nothing reads from the host's end of its device.
type networks struct {
	runtime.Runtime
	cfg    Network
	figure *traffic
	usable func() error // says once why there can be none

	mu    sync.Mutex
	links map[runtime.ID]*link // guarded by mu; of the sandboxes that this process has
}

var _ runtime.Runtime = (*networks)(nil)

func openNetworks(rt runtime.Runtime, cfg Network, reg prometheus.Registerer) (*networks, error) {
	figure, err := newTraffic(reg)
	if err != nil {
		return nil, err
	}
	n := &networks{Runtime: rt, cfg: cfg, figure: figure, links: map[runtime.ID]*link{}}
	n.usable = sync.OnceValue(func() error {
		if rt, ok := rt.(interface{ AdmitNetwork() error }); ok {
			if err := rt.AdmitNetwork(); err != nil {
				return err
			}
		}
		l, err := netns.New(device)
		if err != nil {
			return err
		}
		return l.Close()
	})
	return n, nil
}

// device is that of every sandbox: each is alone on its link.
var device = netns.Config{
	Address: egress.SandboxAddress, MAC: egress.SandboxMAC, Gateway: egress.Gateway, GatewayMAC: egress.GatewayMAC, MTU: egress.MTU,
}

// admit refuses a network where there can be none, and one that puts secrets into
// requests where there is no authority to look into them by.
func (n *networks) admit(bound bool) error {
	if err := n.usable(); err != nil {
		return fault.New(fault.Unavailable, "this server cannot give a sandbox a network: %v", err)
	}
	if bound && n.cfg.Egress.Authority == nil {
		return fault.New(fault.Unavailable, "this server cannot bind secrets to hosts: its certificate authority could not be opened, see its log; nothing was run")
	}
	return nil
}

// env are the variables of an environment with a network, whose sandboxes also trust the
// certificates of a file in the guest's folder; "" for none.
func (n *networks) env(own map[string]string, trusted string) map[string]string {
	all := maps.Clone(n.cfg.Env)
	if all == nil && trusted == "" {
		return own
	}
	if trusted != "" {
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, initclient.TrustVariables(trusted))
	}
	maps.Copy(all, own)
	return all
}

// Create implements sandbox.Runtime.
func (n *networks) Create(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
	return n.connect(ctx, spec, false, n.Runtime.Create)
}

// Restore implements sandbox.Runtime.
func (n *networks) Restore(ctx context.Context, spec runtime.Spec, dir string, share bool) (runtime.Instance, error) {
	return n.connect(ctx, spec, false, func(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
		return n.Runtime.Restore(ctx, spec, dir, share)
	})
}

// Prepare implements sandbox.Runtime.
func (n *networks) Prepare(ctx context.Context, spec runtime.Spec) (runtime.Prepared, error) {
	return n.prepare(ctx, spec, false)
}

// withAuthority is networks for sandboxes that trust the installation's authority.
type withAuthority struct{ *networks }

// Create implements sandbox.Runtime.
func (t withAuthority) Create(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
	return t.connect(ctx, spec, true, t.Runtime.Create)
}

// Restore implements sandbox.Runtime.
func (t withAuthority) Restore(ctx context.Context, spec runtime.Spec, dir string, share bool) (runtime.Instance, error) {
	return t.connect(ctx, spec, true, func(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
		return t.Runtime.Restore(ctx, spec, dir, share)
	})
}

// Prepare implements sandbox.Runtime.
func (t withAuthority) Prepare(ctx context.Context, spec runtime.Spec) (runtime.Prepared, error) {
	return t.prepare(ctx, spec, true)
}

// prepared is a sandbox with a network that waits for its state.
type prepared struct {
	runtime.Prepared
	networks *networks
	ns       *netns.Link
}

func (n *networks) prepare(ctx context.Context, spec runtime.Spec, bound bool) (runtime.Prepared, error) {
	ns, err := netns.New(device)
	if err != nil {
		return nil, fmt.Errorf("make a network: %w", err)
	}
	spec.Network = &runtime.Network{Namespace: ns.Path(), Resolver: egress.Gateway, Authority: bound}
	p, err := n.Runtime.Prepare(ctx, spec)
	if err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	return prepared{p, n, ns}, nil
}

// Restore implements sandbox.Prepared.
func (p prepared) Restore(ctx context.Context, dir string, whole func() error) (runtime.Instance, error) {
	inst, err := p.Prepared.Restore(ctx, dir, whole)
	if err != nil {
		return nil, errors.Join(err, p.ns.Close())
	}
	return p.networks.keep(inst, p.ns.Release()), nil
}

// Destroy implements sandbox.Prepared.
func (p prepared) Destroy(ctx context.Context) error {
	return errors.Join(p.Prepared.Destroy(ctx), p.ns.Close())
}

func (n *networks) connect(ctx context.Context, spec runtime.Spec, bound bool, start func(context.Context, runtime.Spec) (runtime.Instance, error)) (runtime.Instance, error) {
	ns, err := netns.New(device)
	if err != nil {
		return nil, fmt.Errorf("make a network: %w", err)
	}
	spec.Network = &runtime.Network{Namespace: ns.Path(), Resolver: egress.Gateway, Authority: bound}
	inst, err := start(ctx, spec)
	if err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	return n.keep(inst, ns.Release()), nil
}

// Open implements sandbox.Runtime: connections of the sandbox were cut when its
// earlier owner died.
func (n *networks) Open(ctx context.Context, id runtime.ID) (runtime.Instance, error) {
	inst, err := n.Runtime.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	tap, err := netns.Attach(inst.Namespace())
	if err != nil {
		return nil, errors.Join(err, inst.Detach())
	}
	return n.keep(inst, tap), nil
}

func (n *networks) keep(inst runtime.Instance, tap *os.File) runtime.Instance {
	l := &link{networks: n, id: inst.ID(), tap: tap}
	n.mu.Lock()
	n.links[l.id] = l
	n.mu.Unlock()
	return connected{inst, l}
}

// link returns that of a sandbox; nil for none.
func (n *networks) link(id runtime.ID) *link {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.links[id]
}

// connected is a sandbox with a network, which ends with it.
type connected struct {
	runtime.Instance
	link *link
}

// Detach implements sandbox.Instance.
func (c connected) Detach() error { return errors.Join(c.link.close(), c.Instance.Detach()) }

// Destroy implements sandbox.Instance.
func (c connected) Destroy(ctx context.Context) error {
	return errors.Join(c.link.close(), c.Instance.Destroy(ctx))
}

// Check is the runtime's, where it has one.
func (c connected) Check() error {
	if held, ok := c.Instance.(interface{ Check() error }); ok {
		return held.Check()
	}
	return nil
}

// Mount is the runtime's, where it can.
func (c connected) Mount(mounts []runtime.Mount) error {
	if m, ok := c.Instance.(warm.Mounter); ok {
		return m.Mount(mounts)
	}
	return fmt.Errorf("mount folders in %s: %w", c.ID(), runtime.ErrUnsupported)
}

// WriteUpper is the runtime's, where it can.
func (c connected) WriteUpper(ctx context.Context, f *os.File) error {
	if w, ok := c.Instance.(upperWriter); ok {
		return w.WriteUpper(ctx, f)
	}
	return fmt.Errorf("read what %s has above its image: %w", c.ID(), runtime.ErrUnsupported)
}

// PeakMemory is the runtime's, where it tells.
func (c connected) PeakMemory() int64 {
	if held, ok := c.Instance.(interface{ PeakMemory() int64 }); ok {
		return held.PeakMemory()
	}
	u, _ := c.Usage(context.Background())
	return u.PeakMemory
}

// link is a sandbox's way to the world: its device, and from when it was claimed
// the stack that is at its end.
type link struct {
	networks *networks
	id       runtime.ID

	mu    sync.Mutex
	owner string        // guarded by mu; the tenant, if it is known
	tap   *os.File      // guarded by mu; until the stack has it
	stack *egress.Stack // guarded by mu

	told    sync.Mutex          // taken after mu, by the stack's goroutines too
	refused []execution.Refusal // guarded by told; of the program that runs
	recent  []recentRefusal     // guarded by told; oldest first
}

// recentRefusal is a refusal with the time at which the network stack reported it.
type recentRefusal struct {
	execution.Refusal
	at time.Time
}

// own says whose sandbox it is, before its first policy.
func (l *link) own(tenant string) {
	if l != nil {
		l.mu.Lock()
		l.owner = tenant
		l.mu.Unlock()
	}
}

// enforce puts a policy into force, and from the first time on lets traffic pass.
func (l *link) enforce(p runtime.NetworkPolicy) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stack != nil:
		return l.stack.SetPolicy(p)
	case l.tap == nil:
		return errors.New("the sandbox has ended")
	}
	cfg := l.networks.cfg.Egress
	cfg.Tenant = l.owner
	stack, err := egress.New(cfg, l.tap, p, l.refuse)
	if err != nil {
		return err
	}
	l.tap, l.stack = nil, stack
	return nil
}

// bind gives secrets to the requests that the sandbox makes from now on.
func (l *link) bind(list []execution.BoundSecret) error {
	secrets := make([]egress.Secret, len(list))
	for i, s := range list {
		secrets[i] = egress.Secret(s)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stack == nil {
		return errors.New("the sandbox has ended")
	}
	return l.stack.SetSecrets(secrets)
}

// refuse is told of each refusal.
func (l *link) refuse(e egress.Event) {
	host := strings.TrimSuffix(e.Host, ".")
	if host == "" && e.Address.IsValid() {
		host = e.Address.String()
	}
	r := execution.Refusal{Host: host, Port: e.Port, Rule: string(e.Rule)}
	l.told.Lock()
	defer l.told.Unlock()
	l.remember(r, e.Time)
	for _, known := range l.refused {
		if known == r {
			return
		}
	}
	if len(l.refused) < execution.MaxRefusals {
		l.refused = append(l.refused, r)
	}
}

// remember keeps a refusal for refusedSince. l.told is held.
func (l *link) remember(r execution.Refusal, at time.Time) {
	l.recent = slices.DeleteFunc(l.recent, func(known recentRefusal) bool { return known.Refusal == r })
	if len(l.recent) == execution.MaxRefusals {
		l.recent = l.recent[1:]
	}
	l.recent = append(l.recent, recentRefusal{r, at})
}

// refusedSince returns the refusals since a time, newest first.
func (l *link) refusedSince(since time.Time) (all []execution.Refusal) {
	l.told.Lock()
	defer l.told.Unlock()
	for _, r := range l.recent {
		if !r.at.Before(since) {
			all = append(all, r.Refusal)
		}
	}
	slices.Reverse(all)
	return all
}

// take is what the sandbox has had to do with the network since it was asked.
func (l *link) take() execution.Traffic {
	l.mu.Lock()
	stack := l.stack
	l.mu.Unlock()
	if stack == nil {
		return execution.Traffic{}
	}
	u := stack.TakeUsage()
	l.networks.figure.add(u)
	l.told.Lock()
	defer l.told.Unlock()
	t := execution.Traffic{BytesIn: int64(u.BytesIn), BytesOut: int64(u.BytesOut), Hosts: u.Hosts, Refused: l.refused}
	l.refused = nil
	return t
}

// close cuts all connections. It may be called again.
func (l *link) close() error {
	l.take()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.networks.mu.Lock()
	delete(l.networks.links, l.id)
	l.networks.mu.Unlock()
	var err error
	if l.stack != nil {
		err = l.stack.Close()
	} else if l.tap != nil {
		err = l.tap.Close()
	}
	l.tap, l.stack = nil, nil
	return err
}

// SetNetwork puts another policy into force, at once and for connections that
// there are. A sandbox that was made without a network cannot get one.
func (c claimed) SetNetwork(p runtime.NetworkPolicy) error {
	if c.link == nil {
		return runtime.ErrNoNetwork
	}
	return c.link.enforce(p)
}

// Run implements executor.Claimed.
func (c claimed) Run(ctx context.Context, p execution.Program, sink execution.Sink) (execution.Outcome, error) {
	defer c.ended()
	defer c.rests.begin()()
	out, err := c.Sandbox.Run(ctx, p, sink)
	if c.rest != nil {
		c.rest.may = err == nil && !out.Lost && !out.TimedOut && !out.OOM
	}
	return c.metered(out), err
}

// Attach implements executor.Claimed.
func (c claimed) Attach(ctx context.Context, p execution.Program, skip [2]int64, sink execution.Sink) (execution.Outcome, error) {
	defer c.ended()
	defer c.rests.begin()()
	out, err := c.Sandbox.Attach(ctx, p, skip, sink)
	return c.metered(out), err
}

func (c claimed) metered(out execution.Outcome) execution.Outcome {
	if c.link != nil {
		out.Traffic = c.link.take()
	}
	return out
}

// traffic are the network's figures.
type traffic struct {
	bytes   *prometheus.CounterVec
	refused *prometheus.CounterVec
	flows   prometheus.Counter
}

func newTraffic(reg prometheus.Registerer) (*traffic, error) {
	t := &traffic{
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_network_bytes_total", Help: "Bytes between sandboxes and the world, by direction as sandboxes see it, counted when a program ends.",
		}, []string{"direction"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_network_refusals_total", Help: "Connections and lookups of sandboxes that were refused, by rule, counted when a program ends.",
		}, []string{"rule"}),
		flows: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "atoll_network_connections_total", Help: "Connections of sandboxes to the world, counted when a program ends.",
		}),
	}
	for _, direction := range []string{"in", "out"} {
		t.bytes.WithLabelValues(direction)
	}
	for _, r := range egress.Rules {
		t.refused.WithLabelValues(string(r))
	}
	for _, c := range []prometheus.Collector{t.bytes, t.refused, t.flows} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *traffic) add(u egress.Usage) {
	t.bytes.WithLabelValues("in").Add(float64(u.BytesIn))
	t.bytes.WithLabelValues("out").Add(float64(u.BytesOut))
	t.flows.Add(float64(u.Connections))
	for rule, n := range u.Refused {
		t.refused.WithLabelValues(string(rule)).Add(float64(n))
	}
}
