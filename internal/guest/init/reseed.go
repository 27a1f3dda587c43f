package guestinit

import (
	"encoding/hex"
	"path"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// machineID is the file that programs read the machine's id from.
const machineID = "/etc/machine-id"

var generationDir = path.Dir(wire.GenerationFile)

// rename gives the machine that programs see a name of its own.
func (s *supervisor) rename(m *wire.ReseedMessage) error {
	if m.Hostname != "" {
		before := hostName()
		if err := unix.Sethostname([]byte(m.Hostname)); err != nil {
			return step("hostname", err)
		}
		if err := resolveHost(s.machine, m.Hostname, before); err != nil {
			return step("write hosts", err)
		}
	}
	if m.MachineID == "" {
		return nil
	}
	if err := s.writeMachineID([]byte(m.MachineID + "\n")); err != nil {
		return step("write machine-id", err)
	}
	var number [16]byte
	if _, err := unix.Getrandom(number[:], 0); err != nil {
		return step("draw a number", err)
	}
	at, name := s.generation, path.Base(wire.GenerationFile)
	if at < 0 {
		at, name = unix.AT_FDCWD, wire.GenerationFile
		for _, dir := range []string{"/run", generationDir} {
			if err := unix.Mkdir(dir, 0o755); err != nil && err != unix.EEXIST {
				return step("make "+dir, err)
			}
		}
	}
	// A program that watches the file has it open: it gets another content, not another file.
	fd, err := raw.OpenAt(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
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

func (s *supervisor) writeMachineID(data []byte) error {
	if s.machine < 0 {
		return replace(machineID, data)
	}
	return writeAt(s.machine, path.Base(machineID), wire.File{Mode: 0o644, Data: data})
}
