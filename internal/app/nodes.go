package app

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/control/placement"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/internal/infra/nodecert"
	"github.com/atoll-run/atoll/internal/infra/noderpc"
)

// nodesModule connects to other servers for their named sandboxes.
type nodesModule struct {
	*process
	records *recordsModule
	bus     *busModule

	registry *bus.Nodes // nil without certificates for connections between servers
	files    nodecert.Files

	mu      sync.Mutex
	clients map[string]*nodeClient // guarded by mu; by executor
	closed  bool                   // guarded by mu
	closing sync.WaitGroup         // of clients, which may wait for their servers
}

// nodeClient is the connection to one server.
type nodeClient struct {
	*noderpc.Client
	at bus.Node
}

// Start implements module.Part.
func (m *nodesModule) Start(ctx context.Context, undo *module.Undo) (err error) {
	cfg := m.cfg.Settings
	if cfg.NodeCert == "" {
		return nil
	}
	m.files, m.clients = nodecert.Files{Cert: cfg.NodeCert, Key: cfg.NodeKey, CA: cfg.NodeCA}, map[string]*nodeClient{}
	if m.registry, err = m.bus.OpenNodes(ctx); err != nil {
		return err
	}
	undo.Add(func(context.Context) error { m.close(); return nil })
	return nil
}

// close ends all connections.
func (m *nodesModule) close() {
	m.mu.Lock()
	m.closed = true
	for executor, c := range m.clients {
		m.drop(executor, c)
	}
	m.mu.Unlock()
	m.closing.Wait()
}

// drop closes a client in the background. m.mu is held.
func (m *nodesModule) drop(executor string, c *nodeClient) {
	delete(m.clients, executor)
	m.closing.Go(func() {
		if err := c.Close(); err != nil {
			m.log.Debug("cannot close the connection to another server", "executor", executor, "error", err)
		}
	})
}

// Node implements directory.Peers. An executor without records gets proofs of the grants.
func (m *nodesModule) Node(ctx context.Context, executor string) (sandbox.Node, error) {
	c, err := m.client(ctx, executor)
	if err != nil {
		return nil, err
	}
	if c.at.Role == bus.RoleExecutor {
		return executors.Proven(c, executor, m.records.box), nil
	}
	return c, nil
}

func (m *nodesModule) client(ctx context.Context, executor string) (*nodeClient, error) {
	if m.registry == nil {
		return nil, fault.New(fault.Unavailable, "the sandbox is on another machine (executor %s); send the request to that machine's server, or set node_listen on all servers", executor)
	}
	at, err := m.registry.Find(ctx, executor)
	if fault.KindOf(err) == fault.NotFound {
		return nil, fault.New(fault.Unavailable, "the machine of the sandbox (executor %s) cannot be reached; retry when it is back", executor)
	}
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, fault.New(fault.Unavailable, "the server is shutting down; nothing was started. Retry in a few seconds")
	}
	c := m.clients[executor]
	if c != nil && (c.at.Address == at.Address || c.at.Revision > at.Revision) {
		return c, nil
	}
	if c != nil { // the server has moved
		m.drop(executor, c)
	}
	c = &nodeClient{noderpc.New(noderpc.Config{Dial: m.dial(at.Address), Log: m.log}), at}
	m.clients[executor] = c
	return c, nil
}

// Candidates implements directory.Peers.
func (m *nodesModule) Candidates(ctx context.Context) ([]placement.Candidate, error) {
	if m.registry == nil {
		return nil, nil
	}
	all, err := m.registry.List(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]placement.Candidate, len(all))
	for i, n := range all {
		out[i] = placement.Candidate{Executor: n.Name, Sandboxes: n.Sandboxes, MaxSandboxes: n.MaxSandboxes, FreeMemory: n.FreeMemory, CPUs: n.CPUs, Draining: n.Draining}
	}
	return out, nil
}

var _ directory.Peers = (*nodesModule)(nil)

// dial returns a function that connects to a server.
func (m *nodesModule) dial(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		cfg, err := m.files.Client(host)
		if err != nil {
			return nil, err
		}
		return (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", address)
	}
}

// nodeServerModule lets other servers use this one's named sandboxes.
type nodeServerModule struct {
	*process
	nodes     *nodesModule
	control   *controlModule
	sandboxes *sandboxesModule
	draining  func() error // fails while the server shuts down
}

// announcement returns what other servers learn about this one.
func (m *nodeServerModule) announcement() bus.Node {
	cfg := m.cfg.Settings
	return bus.Node{
		Address: cfg.NodeAddress, Role: cfg.Role, Sandboxes: m.sandboxes.Count(), MaxSandboxes: cfg.MaxOnMachine,
		FreeMemory: config.FreeMemory(), CPUs: config.ThisMachine().Cores, Draining: m.draining() != nil,
	}
}

// Start implements module.Part.
func (m *nodeServerModule) Start(ctx context.Context, undo *module.Undo) error {
	cfg := m.cfg.Settings
	if cfg.NodeListen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(cfg.NodeAddress)
	if err != nil {
		return err
	}
	secure, err := m.nodes.files.Server(host)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.NodeListen)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() {
		defer stop() // no announcement without a server
		if err := noderpc.NewServer(m.control.node(m.sandboxes.Manager), m.log).Serve(serving, tls.NewListener(l, secure)); err != nil && serving.Err() == nil {
			m.log.Error("other servers cannot reach this one", "error", err)
		}
	})
	work.Go(func() { m.nodes.registry.Announce(serving, m.announcement) })
	undo.Add(func(context.Context) error {
		stop()
		work.Wait()
		return nil
	})
	m.log.Info("other servers can use this one's named sandboxes", "address", cfg.NodeAddress)
	return nil
}
