package egress

import (
	"net/netip"
	"sync"
	"time"
)

const (
	maxNames  = 1024
	maxAddrs  = 64               // of a name
	nameTTL   = time.Hour        // an address stands for a name; each use begins it anew
	answerTTL = 30 * time.Second // of our answers
)

// names remembers which names the sandbox has looked up, and where they led.
type names struct {
	mu   sync.Mutex
	byID map[string]*known
}

// known is a name that has been looked up.
type known struct {
	at    time.Time                // when it was last resolved
	addrs []netip.Addr             // what it led to then
	until map[netip.Addr]time.Time // every address that stands for it
}

func newNames() *names { return &names{byID: map[string]*known{}} }

// fresh returns what a name led to, if that was just now.
func (n *names) fresh(name string, now time.Time) []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.byID[name]
	if k == nil || now.Sub(k.at) > answerTTL {
		return nil
	}
	return k.addrs
}

// remember keeps that a name leads to addresses. Where too many are known
// already, the one that was resolved longest ago is forgotten.
func (n *names) remember(name string, addrs []netip.Addr, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.byID[name]
	if k == nil {
		if len(n.byID) >= maxNames {
			n.forgetOldest()
		}
		k = &known{until: map[netip.Addr]time.Time{}}
		n.byID[name] = k
	}
	k.at, k.addrs = now, addrs
	if len(k.until)+len(addrs) > maxAddrs {
		clear(k.until)
	}
	for _, a := range addrs {
		k.until[a] = now.Add(nameTTL)
	}
}

func (n *names) forgetOldest() {
	var oldest string
	for name, k := range n.byID {
		if oldest == "" || k.at.Before(n.byID[oldest].at) {
			oldest = name
		}
	}
	delete(n.byID, oldest)
}

// of returns the names that an address stands for.
func (n *names) of(a netip.Addr, now time.Time) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []string
	for name, k := range n.byID {
		if until, ok := k.until[a]; ok && now.Before(until) {
			k.until[a] = now.Add(nameTTL)
			out = append(out, name)
		}
	}
	return out
}
