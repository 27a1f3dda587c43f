package guestinit

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

const (
	hostsFile  = "/etc/hosts"
	localHosts = "127.0.0.1 localhost\n::1 localhost\n"
	maxHosts   = 64 << 10 // bytes of a hosts file that is kept; root programs may write more
)

// resolveHost has a host name resolve to 127.0.0.1, in place of the name before it. etc is
// the folder /etc where programs cannot see it, negative for none.
func resolveHost(etc int, name, before string) error {
	if etc < 0 {
		fd, err := unix.Open(path.Dir(hostsFile), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer raw.Close(fd)
		etc = fd
	}
	text, changed := withHost(readHosts(etc), name, before)
	if !changed {
		return nil
	}
	return writeAt(etc, path.Base(hostsFile), wire.File{Mode: 0o644, Data: []byte(text)})
}

// withHost is the text of a hosts file with a line for a name. The line for the name before
// it goes: only Atoll writes lines with that name alone.
func withHost(text, name, before string) (_ string, changed bool) {
	if text == "" {
		text = localHosts
	}
	var lines []string
	has := false
	for line := range strings.Lines(text) {
		entry, _, _ := strings.Cut(line, "#")
		f := strings.Fields(entry)
		if before != name && len(f) == 2 && f[0] == "127.0.0.1" && f[1] == before {
			continue
		}
		has = has || len(f) > 1 && slices.Contains(f[1:], name)
		lines = append(lines, line)
	}
	out := strings.Join(lines, "")
	if !has {
		if !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		out += "127.0.0.1 " + name + "\n"
	}
	return out, !has || out != text
}

// readHosts reads the hosts file, "" for one that is not a regular file of its size.
func readHosts(etc int) string {
	fd, err := raw.OpenAt(etc, path.Base(hostsFile), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer raw.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxHosts {
		return ""
	}
	data := make([]byte, st.Size)
	n := 0
	for n < len(data) {
		m, err := raw.Read(fd, data[n:])
		if err != nil || m <= 0 {
			break
		}
		n += m
	}
	return string(data[:n])
}

// hostName is the name of the machine that programs see.
func hostName() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Nodename[:])
}
