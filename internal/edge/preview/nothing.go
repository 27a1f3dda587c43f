package preview

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/preview"
)

const (
	lookTime = 5 * time.Second // for a sandbox to say what listens
	maxPorts = 20              // of them that are named
)

// nothing says that nothing listens on the port of a preview, and what does.
func (h *Handler) nothing(ctx context.Context, to *preview.Target) string {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	all, err := to.Use.Listening(ctx)
	if err != nil {
		all = nil // it is told without
	}
	return notListening(to.Port, all)
}

func notListening(port uint16, all []netip.AddrPort) string {
	var ports []string
	for _, at := range all {
		if at.Port() == port {
			return fmt.Sprintf("Nothing listens on port %d of this sandbox at 127.0.0.1, but something does at %s. Have it listen on 0.0.0.0 or 127.0.0.1, then load this page again.", port, at.Addr())
		}
		ports = append(ports, strconv.Itoa(int(at.Port())))
	}
	text := fmt.Sprintf("Nothing listens on port %d of this sandbox. ", port)
	ports = slices.Compact(ports)
	switch n := len(ports); {
	case n == 1:
		text += "Something does on port " + ports[0] + ". "
	case n > maxPorts:
		text += fmt.Sprintf("Something does on %d others, such as %s. ", n, ports[0])
	case n > 1:
		text += "Something does on the ports " + strings.Join(ports[:n-1], ", ") + " and " + ports[n-1] + ". "
	}
	return text + fmt.Sprintf("Start a server on port %d, then load this page again.", port)
}
