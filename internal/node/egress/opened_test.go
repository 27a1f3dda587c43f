package egress

import (
	"io"
	"net"
	"testing"

	"github.com/miekg/dns"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/egress/rules"
)

// A name leads to an address that the operator has opened only where the policy
// holds that address too: the owner of a name could lead it to what was opened
// for another tenant.
func TestNamesThatLeadToOpenedAddresses(t *testing.T) {
	const inside = "10.1.2.9"
	l, err := net.Listen("tcp", inside+":22")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o, err := rules.ParseOpening(inside + ":22")
	if err != nil {
		t.Fatal(err)
	}
	all := hosts("*")
	r := newRig(t, Config{Open: []rules.Opening{o}}, all)
	r.zone.set("sly.test", inside)
	r.zone.set("both.test", inside, good)

	leads("sly.test")(t, r)
	r.events.await(t, Event{Protocol: "dns", Host: "sly.test", Rule: RuleFloor})
	connects(inside+":22")(t, r)
	r.events.await(t, Event{Protocol: "tcp", Port: 22, Rule: RuleFloor})
	if a := r.query(t, "both.test", dns.TypeA); len(a.Answer) != 1 || a.Answer[0].(*dns.A).A.String() != good {
		t.Errorf("a name with a public address too: %v", a.Answer)
	}
	connects(inside+":22")(t, r) // also now that an allowed name has led there

	own := all
	own.AllowedHosts = []string{"*", inside}
	for name, p := range map[string]runtime.NetworkPolicy{"the address": own, "everything": *unrestricted} {
		if err := r.SetPolicy(p); err != nil {
			t.Fatal(err)
		}
		if a := r.query(t, "sly.test", dns.TypeA); len(a.Answer) != 1 {
			t.Errorf("%s is allowed, and the name leads to %v", name, a.Answer)
		}
		c, err := r.dial("tcp", inside+":22")
		if err != nil {
			t.Fatalf("%s is allowed, and is not connected to: %v", name, err)
		}
		if err := r.SetPolicy(all); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); err == nil {
			t.Error("a connection to an address that the policy lost continues")
		}
		c.Close()
		leads("sly.test")(t, r)
	}
}
