package bus

import "github.com/atoll-run/atoll/internal/core/execution"

func appendTraffic(e *encoder, t *execution.Traffic) {
	e.int(t.BytesIn)
	e.int(t.BytesOut)
	e.strs(t.Hosts)
	e.uint(uint64(len(t.Refused)))
	for _, r := range t.Refused {
		e.str(r.Host)
		e.uint(uint64(r.Port))
		e.str(r.Rule)
	}
}

// readTraffic takes the end of a message for none: Results that were stored by
// an older version end before it.
func readTraffic(d *decoder) (t execution.Traffic) {
	if len(d.b) == 0 {
		return t
	}
	t.BytesIn, t.BytesOut, t.Hosts = d.int(), d.int(), d.strs()
	for range d.count(3) {
		t.Refused = append(t.Refused, execution.Refusal{Host: d.str(), Port: uint16(d.uint()), Rule: d.str()})
	}
	return t
}
