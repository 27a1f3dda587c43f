package idmap

import "testing"

func TestTheRangeIsWhatTheNamespaceHas(t *testing.T) {
	for name, c := range map[string]struct {
		ids  string
		want Range // none if empty
	}{
		"root":                           {"0 0 4294967295\n", Range{Base, Count}},
		"a container with many ids":      {"         0     100000    1000000\n", Range{Base, Count}},
		"subordinate ids":                {"0 1001 1\n1 100000 65536\n", Range{1, 65536}},
		"two ranges":                     {"0 1001 1\n1 100000 500\n501 300000 20000\n", Range{501, 20000}},
		"as many as Docker gives":        {"0 100000 65536\n", Range{1, 65535}},
		"too few for the programs' user": {"0 1001 1\n1 100000 1000\n", Range{}},
		"just enough":                    {"0 1001 1\n1 100000 1001\n", Range{1, 1001}},
		"the caller alone":               {"0 1001 1\n", Range{}},
		"nothing that can be read":       {"garbage\n\n1 2\n", Range{}},
		"a range that ends before ours":  {"0 0 524288\n", Range{1, Count}},
		"a range that begins after ours": {"524289 0 100000\n", Range{524289, Count}},
	} {
		got, ok := choose(c.ids, 1000)
		if ok != (c.want.Count > 0) || ok && got != c.want {
			t.Errorf("%s: %+v, %v, not %+v", name, got, ok, c.want)
		}
	}
}

func TestARangeMapsBothWays(t *testing.T) {
	r := Range{Host: Base, Count: Count}
	for _, id := range []uint32{0, 1000, 65535} {
		host, ok := r.ToHost(id)
		guest, back := r.ToGuest(host)
		if !ok || !back || host != Base+id || guest != id {
			t.Errorf("%d is %d on the host, which is %d", id, host, guest)
		}
	}
	if _, ok := r.ToHost(65536); ok {
		t.Error("an id beyond the range is the host's")
	}
	for _, id := range []uint32{0, 1000, Base - 1, Base + Count} {
		if _, ok := r.ToGuest(id); ok {
			t.Errorf("the host's %d is a sandbox's", id)
		}
	}
}
