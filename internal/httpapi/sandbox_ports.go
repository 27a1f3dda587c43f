package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/guest/attend"
	"github.com/atoll-run/atoll/internal/named"
)

func (s *Server) listSandboxPorts(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, nil)
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h *named.Handle) error {
		ports, err := listening(r.Context(), h.Guest())
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, SandboxPorts{ports})
	})
}

// maxSockets bounds what is read of a sandbox's table of sockets.
const maxSockets = 1 << 20

// listening returns the TCP ports that something in a sandbox listens on.
func listening(ctx context.Context, guest *attend.Client) ([]SandboxPort, error) {
	found := []SandboxPort{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		_, in, err := guest.Read(ctx, table, 0, maxSockets)
		if fault.KindOf(err) == fault.NotFound && err != nil {
			continue // a kernel without it
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(io.LimitReader(in, maxSockets))
		if err = errors.Join(err, in.Close()); err != nil {
			return nil, err
		}
		found = append(found, parseListening(text)...)
	}
	slices.SortFunc(found, func(a, b SandboxPort) int {
		if a.Port != b.Port {
			return a.Port - b.Port
		}
		return strings.Compare(a.Address, b.Address)
	})
	return slices.Compact(found), nil
}

// parseListening reads what the kernel of a sandbox writes, or whoever has taken
// it over: lines that are none of its are passed over.
func parseListening(text []byte) []SandboxPort {
	const listen = "0A"
	var found []SandboxPort
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != listen {
			continue
		}
		address, port, ok := strings.Cut(fields[1], ":")
		number, err := strconv.ParseUint(port, 16, 16)
		ip, valid := parseAddress(address)
		if ok && valid && err == nil && number != 0 {
			found = append(found, SandboxPort{Port: int(number), Address: ip.String()})
		}
	}
	return found
}

// parseAddress reads an address as /proc/net has it: words of four bytes, each of
// them backwards.
func parseAddress(text string) (netip.Addr, bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw)%4 != 0 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	ip, ok := netip.AddrFromSlice(raw)
	return ip.Unmap(), ok
}
