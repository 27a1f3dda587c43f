package execution

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

// MaxRefusals limits how many distinct refusals of a program are reported.
const MaxRefusals = 100

// RefusalAgain is the interval after which the network reports a sandbox's same refusal again.
const RefusalAgain = 10 * time.Second

// Traffic summarizes a program's use of the network.
type Traffic struct {
	BytesIn, BytesOut int64
	Hosts             []string  // contacted: names, or addresses without a known name; sorted
	Refused           []Refusal // at most MaxRefusals, in order
}

// Refusal is a connection or a lookup that the network's policy refused.
type Refusal struct {
	Host string // the requested name or address
	Port uint16 // 0 for a lookup
	Rule string // the rule that refused it
}

// String formats a refusal for records. Hosts contain no spaces.
func (r Refusal) String() string {
	if r.Port == 0 {
		return fmt.Sprintf("refused %s (%s)", r.Host, r.Rule)
	}
	return fmt.Sprintf("refused %s (%s)", net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))), r.Rule)
}

// Outbound lists the contacted hosts, then the refusals.
func (t *Traffic) Outbound() []string {
	var all []string
	all = append(all, t.Hosts...)
	for _, r := range t.Refused {
		all = append(all, r.String())
	}
	return all
}
