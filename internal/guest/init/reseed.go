package guestinit

import (
	"encoding/hex"
	"path"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// rename gives the machine that programs see a name of its own.
func rename(m *wire.ReseedMessage) error {
	if m.Hostname != "" {
		if err := unix.Sethostname([]byte(m.Hostname)); err != nil {
			return step("hostname", err)
		}
	}
	if m.MachineID == "" {
		return nil
	}
	if err := replace("/etc/machine-id", []byte(m.MachineID+"\n")); err != nil {
		return step("write machine-id", err)
	}
	var number [16]byte
	if _, err := unix.Getrandom(number[:], 0); err != nil {
		return step("draw a number", err)
	}
	for _, dir := range []string{"/run", path.Dir(wire.GenerationFile)} {
		if err := unix.Mkdir(dir, 0o755); err != nil && err != unix.EEXIST {
			return step("make "+dir, err)
		}
	}
	// A program that watches the file has it open: it gets another content, not another file.
	fd, err := raw.OpenAt(unix.AT_FDCWD, wire.GenerationFile, unix.O_WRONLY|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return step("open the generation's file", err)
	}
	defer raw.Close(fd)
	text := hex.EncodeToString(number[:]) + "\n" // of one length
	if n, err := unix.Write(fd, []byte(text)); err != nil || n != len(text) {
		return step("write the generation's number", err)
	}
	return nil
}
