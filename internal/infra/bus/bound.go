package bus

import "github.com/atoll-run/atoll/internal/core/execution"

func appendBound(e *encoder, secrets []execution.BoundSecret) {
	e.uint(uint64(len(secrets)))
	for i := range secrets {
		e.str(secrets[i].Placeholder)
		e.str(secrets[i].Value)
		e.strs(secrets[i].Hosts)
	}
}

func readBound(d *decoder) []execution.BoundSecret {
	var out []execution.BoundSecret
	for range d.count(3) {
		out = append(out, execution.BoundSecret{Placeholder: d.str(), Value: d.str(), Hosts: d.strs()})
	}
	return out
}
