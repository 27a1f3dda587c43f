package bus

import "github.com/atoll-run/atoll/internal/core/storage"

func appendMounts(e *encoder, mounts []storage.Mount) {
	e.uint(uint64(len(mounts)))
	for i := range mounts {
		m := &mounts[i]
		e.str(m.Slug)
		e.str(m.Connection)
		e.str(string(m.Kind))
		e.str(string(m.Path))
		e.bool(m.ReadOnly)
		e.bool(m.PathStyle)
		for _, s := range texts(m) {
			e.str(*s)
		}
	}
}

func readMounts(d *decoder) []storage.Mount {
	var out []storage.Mount
	for range d.count(14) {
		m := storage.Mount{Slug: d.str(), Connection: d.str(), Kind: storage.Kind(d.str()), Path: storage.Path(d.str()), ReadOnly: d.bool()}
		m.PathStyle = d.bool()
		for _, s := range texts(&m) {
			*s = d.str()
		}
		out = append(out, m)
	}
	return out
}

// texts are what a target holds, in the order of the message.
func texts(m *storage.Mount) []*string {
	return []*string{&m.Bucket, &m.Region, &m.Endpoint, &m.Account, &m.AccessKeyID, &m.SecretAccessKey, &m.ServiceAccount, &m.AccountKey}
}
