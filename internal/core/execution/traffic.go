package execution

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

// MaxRefusals is how many different refusals of a program are told.
const MaxRefusals = 100

// RefusalAgain is the interval after which the network reports a sandbox's same refusal again.
const RefusalAgain = 10 * time.Second

// Traffic is what a program had to do with the network.
type Traffic struct {
	BytesIn, BytesOut int64
	Hosts             []string  // contacted: names, or addresses that had none; sorted
	Refused           []Refusal // at most MaxRefusals, in their order
}

// Refusal is a connection or a lookup that the network's policy refused.
type Refusal struct {
	Host string // the name or the address that was wanted
	Port uint16 // 0 for a lookup
	Rule string // that refused it
}

// String is how a refusal is told. What is contacted has no space in its name.
func (r Refusal) String() string {
	if r.Port == 0 {
		return fmt.Sprintf("refused %s (%s)", r.Host, r.Rule)
	}
	return fmt.Sprintf("refused %s (%s)", net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))), r.Rule)
}

// Outbound lists the hosts that were contacted, then what was refused.
func (t *Traffic) Outbound() []string {
	var all []string
	all = append(all, t.Hosts...)
	for _, r := range t.Refused {
		all = append(all, r.String())
	}
	return all
}
