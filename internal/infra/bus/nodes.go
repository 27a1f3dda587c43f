package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/fault"
)

const (
	nodesBytes = 16 << 20
	// nodeLease is how long an announcement is valid, and nodeBeat how often a server repeats it.
	nodeLease = 5 * time.Second
	nodeBeat  = time.Second
	// nodesAge is how long List reuses its last answer.
	nodesAge = 500 * time.Millisecond

	maxNode    = 4 << 10 // bytes of an announcement
	maxAddress = 300     // bytes of an address
	maxNodes   = 10_000  // announcements that List reads
)

// Roles of servers that announce themselves.
const (
	RoleAll      = "all"
	RoleExecutor = "executor"
)

// Nodes is the registry of the servers whose sandboxes others can reach.
type Nodes struct {
	b  *Bus
	kv jetstream.KeyValue

	listing sync.Mutex // held while the registry is read
	listed  []Node     // guarded by listing
	until   time.Time  // guarded by listing; listed is valid
}

// Node is a server's announcement. Only Address is required.
type Node struct {
	Name     string `json:"-"` // of the server's executor
	Revision uint64 `json:"-"` // increases with each announcement in the installation

	Address      string `json:"address"`                 // host and port of the connections between servers
	Role         string `json:"role,omitempty"`          // RoleAll or RoleExecutor; RoleAll if empty
	Sandboxes    int    `json:"sandboxes,omitempty"`     // named sandboxes, including sleeping ones
	MaxSandboxes int    `json:"max_sandboxes,omitempty"` // limit of Sandboxes; 0 for none
	FreeMemory   int64  `json:"free_memory,omitempty"`   // bytes that the machine can still use; 0 if unknown
	CPUs         int    `json:"cpus,omitempty"`          // processors of the machine; 0 if unknown
	Draining     bool   `json:"draining,omitempty"`      // the server shuts down and takes no new sandboxes
}

// OpenNodes opens the registry, and creates it if it does not exist.
func (b *Bus) OpenNodes(ctx context.Context) (*Nodes, error) {
	kv, err := b.ensureBucket(ctx, jetstream.KeyValueConfig{
		Bucket: b.names.nodes, Description: "addresses of servers that others reach for their sandboxes", TTL: nodeLease, MaxBytes: nodesBytes,
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return &Nodes{b: b, kv: kv}, nil
}

// Announce registers this server until ctx ends. It calls current for the values of each
// announcement, about once a second.
func (n *Nodes) Announce(ctx context.Context, current func() Node) {
	missed := false
	tick := time.NewTicker(nodeBeat)
	defer tick.Stop()
	for {
		entry, err := json.Marshal(current())
		if err != nil {
			panic(err) // it has only strings and numbers
		}
		beat, cancel := context.WithTimeout(ctx, nodeLease)
		_, err = n.kv.Put(beat, n.b.cfg.Name, entry)
		cancel()
		if err != nil && ctx.Err() == nil && !missed {
			n.b.cfg.Log.Warn("other servers cannot find this one until the message bus stores its address", "error", err)
		}
		missed = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), nodeBeat)
			defer cancel()
			_ = n.kv.Delete(gone, n.b.cfg.Name) // else its lease ends
			return
		}
	}
}

// Find returns the last announcement of a server. It returns a NotFound fault for a server that does
// not announce itself.
func (n *Nodes) Find(ctx context.Context, name string) (Node, error) {
	if !isToken(name) {
		return Node{}, errNoNode
	}
	entry, err := n.kv.Get(ctx, name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Node{}, errNoNode
	}
	if err != nil {
		return Node{}, unavailable(err)
	}
	of, err := decodeNode(entry)
	if err != nil {
		return Node{}, unavailable(err)
	}
	return of, nil
}

// List returns the servers that announce themselves, by name. It skips announcements that it cannot
// decode. The answer may be half a second old. Callers must not modify it.
func (n *Nodes) List(ctx context.Context) ([]Node, error) {
	n.listing.Lock()
	defer n.listing.Unlock()
	if time.Now().Before(n.until) {
		return n.listed, nil
	}
	all, err := n.read(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	n.listed, n.until = all, time.Now().Add(nodesAge)
	return all, nil
}

// read reads all announcements in one pass.
func (n *Nodes) read(ctx context.Context) ([]Node, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeLease)
	defer cancel()
	w, err := n.kv.WatchAll(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Stop() }()
	found := map[string]Node{}
	for {
		select {
		case entry, open := <-w.Updates():
			if !open {
				return nil, errors.New("the registry of servers ended before its last entry")
			}
			if entry == nil { // all entries were read
				return slices.SortedFunc(maps.Values(found), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) }), nil
			}
			delete(found, entry.Key())
			if entry.Operation() != jetstream.KeyValuePut || len(found) >= maxNodes {
				continue
			}
			if of, err := decodeNode(entry); err == nil {
				found[of.Name] = of
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// decodeNode decodes an announcement.
func decodeNode(entry jetstream.KeyValueEntry) (Node, error) {
	of, err := parseNode(entry.Value())
	if err != nil {
		return Node{}, fmt.Errorf("the announcement of %s: %w", entry.Key(), err)
	}
	of.Name, of.Revision = entry.Key(), entry.Revision()
	return of, nil
}

// parseNode decodes the value of an announcement. It ignores fields that it does not know, and
// treats numbers below 0 as 0.
func parseNode(value []byte) (Node, error) {
	var of Node
	if len(value) > maxNode {
		return Node{}, fmt.Errorf("it has %d bytes, more than %d", len(value), maxNode)
	}
	if err := json.Unmarshal(value, &of); err != nil {
		return Node{}, err
	}
	if of.Address == "" || len(of.Address) > maxAddress {
		return Node{}, errors.New("it has no valid address")
	}
	switch of.Role {
	case RoleAll, RoleExecutor:
	case "":
		of.Role = RoleAll
	default:
		return Node{}, fmt.Errorf("unknown role %.40q", of.Role)
	}
	of.Sandboxes, of.MaxSandboxes, of.CPUs, of.FreeMemory = max(of.Sandboxes, 0), max(of.MaxSandboxes, 0), max(of.CPUs, 0), max(of.FreeMemory, 0)
	return of, nil
}

var errNoNode = fault.New(fault.NotFound, "the server does not announce itself")
