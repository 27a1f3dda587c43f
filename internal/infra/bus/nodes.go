package bus

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/fault"
)

const (
	nodesBytes = 16 << 20
	// nodeLease is how long an announcement is valid, and nodeBeat how often a server repeats it.
	nodeLease = 5 * time.Second
	nodeBeat  = time.Second
)

// Nodes is the registry of the servers whose sandboxes others can reach.
type Nodes struct {
	b  *Bus
	kv jetstream.KeyValue
}

// Node is a server's announcement.
type Node struct {
	Address  string `json:"address"` // host and port of the connections between servers
	Revision uint64 `json:"-"`       // increases with each announcement in the installation
}

// OpenNodes opens the registry, and creates it if it does not exist.
func (b *Bus) OpenNodes(ctx context.Context) (*Nodes, error) {
	kv, err := b.ensureBucket(ctx, jetstream.KeyValueConfig{
		Bucket: b.names.nodes, Description: "addresses of servers that others reach for their sandboxes", TTL: nodeLease, MaxBytes: nodesBytes,
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return &Nodes{b, kv}, nil
}

// Announce registers this server under an address until ctx ends.
func (n *Nodes) Announce(ctx context.Context, address string) {
	entry, err := json.Marshal(Node{Address: address})
	if err != nil {
		panic(err) // it is a string
	}
	missed := false
	tick := time.NewTicker(nodeBeat)
	defer tick.Stop()
	for {
		beat, cancel := context.WithTimeout(ctx, nodeLease)
		_, err := n.kv.Put(beat, n.b.cfg.Name, entry)
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
	of := Node{Revision: entry.Revision()}
	if err := json.Unmarshal(entry.Value(), &of); err != nil {
		return Node{}, unavailable(err)
	}
	return of, nil
}

var errNoNode = fault.New(fault.NotFound, "the server does not announce itself")
