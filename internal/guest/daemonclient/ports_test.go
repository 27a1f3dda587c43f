package daemonclient

import (
	"net/netip"
	"slices"
	"testing"
)

func TestParseListening(t *testing.T) {
	got := parseListening([]byte(`  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1
   1: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1
   2: 0100007F:1F41 0100007F:1F40 01 00000000:00000000 00:00000000 00000000  1000        0 1
   3: 00000000000000000000000001000000:0051 00000000000000000000000000000000:0000 0A
   4: 00:0051 0 0A
   5: 00000000:FFFFF 0 0A
   6: 00000000 0 0A
`))
	want := []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:8000"), netip.MustParseAddrPort("127.0.0.1:80"), netip.MustParseAddrPort("[::1]:81")}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzParseListening(f *testing.F) {
	f.Add([]byte("0: 00000000:1F40 00000000:0000 0A"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, p := range parseListening(text) {
			if !p.IsValid() || p.Port() == 0 {
				t.Errorf("%q gives %v", text, p)
			}
		}
	})
}
