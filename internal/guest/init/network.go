package guestinit

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// guestDir is where this program is mounted, see sandbox.GuestDir.
const guestDir = "/.atoll/"

// imageBundles are where images have the certificates they trust.
var imageBundles = []string{wire.CABundle, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}

// joinNetwork has programs find the network that the sandbox was given, if it was.
func joinNetwork() error {
	resolver, ok := syscall.Getenv(wire.ResolverEnv)
	if !ok {
		return nil
	}
	if err := replace("/etc/resolv.conf", []byte("nameserver "+resolver+"\n")); err != nil {
		return step("write resolv.conf", err)
	}
	name := wire.CAFile
	_, bound := syscall.Getenv(wire.AuthorityEnv)
	if bound {
		name = wire.BoundCAFile
	}
	more, err := readWhole(guestDir + name)
	if err == unix.ENOENT && !bound {
		return nil
	}
	if err != nil {
		return step("read "+name, err)
	}
	for _, path := range imageBundles {
		if own, err := readWhole(path); err == nil && len(own) > 0 {
			more = append(append(own, '\n'), more...)
			break
		}
	}
	return step("write "+wire.CABundle, replace(wire.CABundle, more))
}

// replace writes a file that every user can read, in place of whatever the image
// has there, be it a link.
func replace(path string, data []byte) error {
	if err := unlink(path); err != nil && err != unix.ENOENT {
		return err
	}
	return writeFile(wire.File{Path: path, Mode: 0o644, Data: data}, -1)
}

func readWhole(path string) ([]byte, error) {
	fd, err := raw.OpenAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer raw.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	data := make([]byte, st.Size)
	n := 0
	for n < len(data) {
		m, err := unix.Read(fd, data[n:])
		if err != nil {
			return nil, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return data[:n], nil
}
