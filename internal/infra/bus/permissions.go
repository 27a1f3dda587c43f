package bus

import (
	"net/netip"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

func appendPermissions(e *encoder, p *runtime.Permissions) {
	n := &p.Network
	e.str(string(n.Mode))
	e.strs(n.AllowedHosts)
	e.uint(uint64(len(n.AllowedCIDRs)))
	for _, prefix := range n.AllowedCIDRs {
		e.str(prefix.String())
	}
	e.uint(uint64(len(n.BlockedPorts)))
	for _, port := range n.BlockedPorts {
		e.uint(uint64(port))
	}
	f := &p.Filesystem
	e.bool(f.Writable != nil) // nil restricts nothing, an empty list everything
	e.strs(f.Writable)
	e.strs(f.ReadOnly)
	e.strs(f.Blocked)
	e.bool(p.Process.NoExec)
	e.strs(p.Process.BlockedCommands)
	e.int(int64(p.Process.MaxProcesses))
}

func readPermissions(d *decoder) (p runtime.Permissions) {
	n := &p.Network
	n.Mode = runtime.NetworkMode(d.str())
	n.AllowedHosts = d.strs()
	for range d.count(2) {
		prefix, err := netip.ParsePrefix(d.str())
		if err != nil {
			d.fail()
		}
		n.AllowedCIDRs = append(n.AllowedCIDRs, prefix)
	}
	for range d.count(1) {
		port := d.uint()
		if port > 0xffff {
			d.fail()
		}
		n.BlockedPorts = append(n.BlockedPorts, uint16(port))
	}
	f := &p.Filesystem
	restricted := d.bool()
	f.Writable = d.strs()
	if restricted && f.Writable == nil {
		f.Writable = []string{}
	}
	f.ReadOnly = d.strs()
	f.Blocked = d.strs()
	p.Process.NoExec = d.bool()
	p.Process.BlockedCommands = d.strs()
	p.Process.MaxProcesses = int(d.int())
	return p
}

func appendThread(e *encoder, t *execution.Thread) {
	e.bool(t != nil)
	if t != nil {
		e.str(t.ID)
		e.str(t.State)
		e.int(t.Quota)
	}
}

func readThread(d *decoder) *execution.Thread {
	if !d.bool() {
		return nil
	}
	return &execution.Thread{ID: d.str(), State: d.str(), Quota: d.int()}
}

func appendThreadState(e *encoder, s *execution.ThreadState) {
	e.bool(s != nil)
	if s != nil {
		e.str(s.State)
		e.int(s.Bytes)
		e.int(s.Files)
	}
}

// readThreadState takes the end of a message for no state: Results that were
// stored by an older version end before it.
func readThreadState(d *decoder) *execution.ThreadState {
	if len(d.b) == 0 || !d.bool() {
		return nil
	}
	return &execution.ThreadState{State: d.str(), Bytes: d.int(), Files: d.int()}
}
