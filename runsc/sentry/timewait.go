package main

import (
	"sync"
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/sentry/arch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/socket/netstack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// forgetClosedConnections has a kernel that woke from a checkpoint forget, before a
// program connects for the first time, the connections that are over and only kept
// for what of them may still be under way (TIME-WAIT).
//
// A port that one of them had may be used again, if the new connection begins with
// a higher number than the old one ended with. That is so as long as all numbers
// come from one clock and one secret. gVisor draws another secret when it wakes and
// begins to wait anew, so that one in two such connections would hang for a minute.
// Nothing is under way: what was, on a link that no packet can outlive a sleep on,
// was taken or lost.
func forgetClosedConnections() {
	for _, table := range kernel.SyscallTables() {
		connect, err := table.LookupNo("connect")
		if err != nil {
			continue
		}
		var once sync.Once
		table.ExternalFilterBefore = func(t *kernel.Task, _ uintptr, _ arch.SyscallArguments) bool {
			once.Do(func() {
				forget(t.Kernel())
				table.FeatureEnable.Enable(kernel.ExternalBeforeEnable, nil, false)
			})
			return false // the call goes on
		}
		table.FeatureEnable.Enable(kernel.ExternalBeforeEnable, map[uintptr]bool{connect: true}, false)
	}
}

func forget(k *kernel.Kernel) {
	s, ok := k.RootNetworkNamespace().Stack().(*netstack.Stack)
	if !ok {
		return
	}
	for _, te := range s.Stack.RegisteredEndpoints() {
		if e, ok := te.(*tcp.Endpoint); ok {
			timeWaitTimerExpired(e)
		}
	}
}

// timeWaitTimerExpired closes a connection that is in TIME-WAIT, and no other.
//
//go:linkname timeWaitTimerExpired gvisor.dev/gvisor/pkg/tcpip/transport/tcp.(*Endpoint).timeWaitTimerExpired
func timeWaitTimerExpired(e *tcp.Endpoint)
