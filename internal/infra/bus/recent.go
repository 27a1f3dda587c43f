package bus

// remembered is how many ids a recent knows.
const remembered = 4096

// recent knows the ids that were added last. The zero value is ready.
type recent struct {
	ids  map[string]bool
	ring [remembered]string
	next int
}

func (r *recent) add(id string) {
	if r.ids[id] {
		return
	}
	if r.ids == nil {
		r.ids = map[string]bool{}
	}
	delete(r.ids, r.ring[r.next])
	r.ring[r.next] = id
	r.ids[id] = true
	r.next = (r.next + 1) % remembered
}

func (r *recent) has(id string) bool { return r.ids[id] }
