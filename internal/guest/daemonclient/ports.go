package daemonclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// maxSockets bounds what is read of a sandbox's table of sockets, in bytes.
const maxSockets = 1 << 20

// Listening returns where something in the sandbox listens for TCP connections, by port.
func (c *Client) Listening(ctx context.Context) ([]netip.AddrPort, error) {
	var found []netip.AddrPort
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		_, in, err := c.Read(ctx, table, 0, maxSockets)
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
	slices.SortFunc(found, func(a, b netip.AddrPort) int {
		if a.Port() != b.Port() {
			return int(a.Port()) - int(b.Port())
		}
		return strings.Compare(a.Addr().String(), b.Addr().String())
	})
	return slices.Compact(found), nil
}

// parseListening reads what the kernel of a sandbox writes, or a program that has taken
// it over: lines that are none of its are passed over.
func parseListening(text []byte) []netip.AddrPort {
	const listen = "0A"
	var found []netip.AddrPort
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
			found = append(found, netip.AddrPortFrom(ip, uint16(number)))
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
