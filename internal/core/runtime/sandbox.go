// Package runtime defines the types of a sandbox, an isolated instance with its own kernel, and the
// contract that every runtime implements.
package runtime

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// ID names a sandbox: "sb-" and 16 hexadecimal digits. It is a separate type so that the compiler
// rejects an execution's trace id.
type ID string

// NewID returns an unguessable ID.
func NewID() ID {
	var b [8]byte
	rand.Read(b[:])
	return ID("sb-" + hex.EncodeToString(b[:]))
}

var idPattern = regexp.MustCompile(`^sb-[0-9a-f]{16}$`)

// Valid reports whether id is well-formed. State directories are named by ids, so callers must
// validate an id before they use it in a path.
func (id ID) Valid() bool { return idPattern.MatchString(string(id)) }

// UID, GID and Home belong to the unprivileged user that runs programs in every sandbox. The guest
// itself runs as the sandbox's uid 0.
const (
	UID  = 1000
	GID  = 1000
	Home = "/home/user"
)

// GuestDir is the read-only mount point of the guest's own files.
const GuestDir = "/.atoll"

// Limits bounds the resources of one sandbox. Every field must be positive.
type Limits struct {
	CPU       float64 // cores
	Memory    int64   // bytes: programs, page cache and in-memory files together
	Processes int     // tasks (processes and threads) of the unprivileged user
	OpenFiles int     // descriptors per process
	Root      int64   // bytes of the writable overlay over the image
	Tmp       int64   // bytes of /tmp
	Shm       int64   // bytes of /dev/shm
	Inodes    int     // files in each of the three
}

// DefaultLimits returns the limits of an environment that sets none.
func DefaultLimits() Limits {
	const MiB = 1 << 20
	return Limits{
		CPU:       1,
		Memory:    512 * MiB,
		Processes: 256,
		OpenFiles: 1024,
		Root:      128 * MiB,
		Tmp:       128 * MiB,
		Shm:       64 * MiB,
		Inodes:    100_000,
	}
}

// Validate returns an error if a limit cannot work.
func (l Limits) Validate() error {
	switch {
	case l.CPU <= 0, l.Memory <= 0, l.Processes <= 0, l.OpenFiles <= 0, l.Root <= 0, l.Tmp <= 0, l.Shm <= 0, l.Inodes <= 0:
		return errors.New("every limit must be positive")
	case l.Memory < 64<<20:
		return errors.New("memory must be at least 64 MiB")
	case l.Root+l.Tmp+l.Shm >= l.Memory:
		return fmt.Errorf("root, tmp and shm live in memory: together (%d bytes) they must stay below the memory limit (%d bytes)", l.Root+l.Tmp+l.Shm, l.Memory)
	}
	return nil
}

// ShrinkFiles limits the root and /tmp file systems to a quarter of the memory each, and /dev/shm
// to an eighth, if together they do not fit into the memory.
func (l *Limits) ShrinkFiles() {
	if l.Root+l.Tmp+l.Shm < l.Memory {
		return
	}
	l.Root, l.Tmp, l.Shm = min(l.Root, l.Memory/4), min(l.Tmp, l.Memory/4), min(l.Shm, l.Memory/8)
}

// Rootfs is the root file system of a sandbox, read-only beneath the overlay. Exactly one of Image
// and Tree is set.
type Rootfs struct {
	Image string // path of an EROFS file, uncompressed and without inline data
	Tree  string // path of a directory; slower to start
	Binds []Bind // read-only host directories in the sandbox; only with Tree
}

// Bind shows a host directory read-only in a sandbox.
type Bind struct{ Source, Target string }

// Mount shows a host directory in a sandbox; under gVisor a file server process serves it. Files
// belong to the users that package idmap names. Later changes on the host are visible immediately.
// Under gVisor so are later mounts below the directory, if it is on a shared mount (mount
// --make-shared).
type Mount struct {
	Source, Target string
	Writable       bool
	// Own says that no host process changes the directory while the sandbox runs. The kernel then
	// caches name lookups, which makes opening a file six times as fast.
	Own bool
}

// Validate returns an error if the mount cannot work.
func (m Mount) Validate() error {
	for _, p := range []string{m.Source, m.Target} {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
			return fmt.Errorf("mount %q on %q: both must be absolute, without \".\" or \"..\", and not /", m.Source, m.Target)
		}
	}
	if m.Target == GuestDir || strings.HasPrefix(m.Target, GuestDir+"/") {
		return fmt.Errorf("mount on %s: %s belongs to the guest", m.Target, GuestDir)
	}
	return nil
}

// Network is the network of a sandbox.
type Network struct {
	// Namespace is the path of a network namespace with configured devices. It must exist until the
	// sandbox has started, which then keeps the namespace alive.
	Namespace string
	// Resolver is the DNS server in /etc/resolv.conf.
	Resolver netip.Addr
	// Authority makes the sandbox trust the installation's certificate authority.
	Authority bool
}

// Spec describes a sandbox to create.
type Spec struct {
	ID     ID
	Rootfs Rootfs
	Limits Limits
	Mounts []Mount
	// Network connects the sandbox; nil gives it no network device.
	Network *Network
	Traces  bool // the guest inspects the programs that start
	// Shared lets the guest isolate several consecutive programs from each other; see
	// initclient.Client.Renew.
	Shared bool
	// Guest is a guest image to use instead of the runtime's: one with certificates, or the one
	// that a checkpoint was taken with; "" for the runtime's.
	Guest string
	// Sockets lets users that may open a Unix socket on a mount connect to it. gVisor otherwise
	// forbids it.
	Sockets bool
	// Labels are stored with the sandbox, so that a later process can tell its purpose (for example
	// "pool": "python").
	Labels map[string]string
}

// Usage is the resource usage of a sandbox so far.
type Usage struct {
	CPUSeconds float64
	Memory     int64 // bytes in use that cannot be reclaimed, without page cache
	PeakMemory int64 // bytes, with page cache
	OOMKills   int   // programs that the host kernel killed because memory ran out
	Relieved   int   // programs that were killed before that, because they were the largest
}

// FormatBytes formats a size as in settings: "512 MiB".
func FormatBytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return strconv.FormatFloat(f, 'f', -1, 64) + " " + units[i]
}
