package egress

import (
	"io"
	"net"
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// parrot is a Service that says what it hears.
type parrot struct{}

func (parrot) Name() string { return "parrot.test" }

func (parrot) Serve(c net.Conn) {
	_, _ = io.Copy(c, c)
	_ = c.Close()
}

// A service answers whatever the rules allow, on its port alone, and not where
// the network is blocked.
func TestServicesAnswerOnTheGateway(t *testing.T) {
	r := newRig(t, Config{Services: map[uint16]Service{3141: parrot{}}}, runtime.NetworkPolicy{Mode: runtime.NetworkRules})
	r.TakeUsage()
	c, err := r.dial("tcp", Gateway.String()+":3141")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 5)
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "hello" {
		t.Errorf("the answer is %q, %v", answer, err)
	}
	if u := r.TakeUsage(); u.BytesOut != 5 || u.BytesIn != 5 || !slices.Equal(u.Hosts, []string{"parrot.test"}) {
		t.Errorf("counted: %+v", u)
	}
	if u := r.TakeUsage(); u.BytesOut != 0 || len(u.Hosts) != 0 || u.Connections != 0 {
		t.Errorf("counted twice: %+v", u)
	}
	if other, err := r.dial("tcp", Gateway.String()+":3142"); err == nil {
		other.Close()
		t.Error("another port of the gateway answers")
	}
	r.events.await(t, Event{Rule: RuleFloor, Port: 3142})

	if err := r.SetPolicy(runtime.NetworkPolicy{}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, answer); err == nil {
		t.Error("a blocked network's connection continues")
	}
	c.Close()
	if again, err := r.dial("tcp", Gateway.String()+":3141"); err == nil {
		again.Close()
		t.Error("a service answers where the network is blocked")
	}
	r.events.await(t, Event{Rule: RuleBlocked, Port: 3141})
}
