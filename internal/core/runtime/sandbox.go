// Package runtime holds the types of a sandbox, an isolated instance with its
// own kernel, and the contract that every runtime implements.
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

// ID names a sandbox: "sb-" and 16 hexadecimal digits. Being its own type, it
// is never mistaken for an execution's trace id.
type ID string

// NewID returns an unguessable ID.
func NewID() ID {
	var b [8]byte
	rand.Read(b[:])
	return ID("sb-" + hex.EncodeToString(b[:]))
}

var idPattern = regexp.MustCompile(`^sb-[0-9a-f]{16}$`)

// Valid reports whether id has the form NewID gives. State folders are named
// by ids, so nothing else may ever become part of a path.
func (id ID) Valid() bool { return idPattern.MatchString(string(id)) }

// UID and GID are the unprivileged user that programs run as inside every
// sandbox; the guest itself is the sandbox's uid 0.
const (
	UID  = 1000
	GID  = 1000
	Home = "/home/user"
)

// GuestDir is where the guest's own files are mounted, read-only.
const GuestDir = "/.atoll"

// Limits bound what one sandbox may use. Every field must be positive.
type Limits struct {
	CPU       float64 // cores
	Memory    int64   // bytes: programs, page cache and in-memory files together
	Processes int     // tasks (processes and threads) of the unprivileged user
	OpenFiles int     // descriptors of one process
	Root      int64   // bytes of the writable overlay over the image
	Tmp       int64   // bytes of /tmp
	Shm       int64   // bytes of /dev/shm
	Inodes    int     // files in each of the three
}

// DefaultLimits are what an environment gets that says nothing.
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

// Validate reports the first limit that cannot work.
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

// ShrinkFiles makes the in-memory files a quarter of the memory each, and shm an eighth,
// where together they do not fit in it.
func (l *Limits) ShrinkFiles() {
	if l.Root+l.Tmp+l.Shm < l.Memory {
		return
	}
	l.Root, l.Tmp, l.Shm = min(l.Root, l.Memory/4), min(l.Tmp, l.Memory/4), min(l.Shm, l.Memory/8)
}

// Rootfs is what a sandbox sees as /, read-only beneath the overlay. Exactly
// one of Image and Tree is set.
type Rootfs struct {
	Image string // path of an EROFS file, uncompressed and without inline data
	Tree  string // path of a folder; slower to start
	Binds []Bind // host folders shown inside, read-only; only with Tree
}

// Bind shows a host folder inside a sandbox, read-only.
type Bind struct{ Source, Target string }

// Mount shows a host folder inside a sandbox, under gVisor through a file server
// process beside it. Files belong to the users that package idmap names. What is put into the
// folder on the host later is seen inside at once; under gVisor, so is what is
// mounted below it, if it lies on a shared mount (mount --make-shared).
type Mount struct {
	Source, Target string
	Writable       bool
	// Own says that no process of the host changes the folder while the sandbox lives.
	// The kernel then looks names up once: opening a file takes a sixth of the time.
	Own bool
}

// Validate reports a mount that cannot work.
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

// Network is the network that a sandbox sees.
type Network struct {
	// Namespace is the path of a network namespace with its devices set up. It
	// is needed until the sandbox has started, which then keeps the namespace.
	Namespace string
	// Resolver is the DNS server that /etc/resolv.conf names.
	Resolver netip.Addr
	// Authority has the sandbox trust the installation's certificate authority.
	Authority bool
}

// Spec is all a runtime needs to make a sandbox.
type Spec struct {
	ID     ID
	Rootfs Rootfs
	Limits Limits
	Mounts []Mount
	// Network connects the sandbox; nil leaves it without any device.
	Network *Network
	Traces  bool // the guest looks at what programs execute
	// Shared lets the guest keep several programs apart in it, that come one after
	// another: guest.Client.Renew.
	Shared bool
	// Guest is another image of the guest than the runtime's, with certificates or for a
	// checkpoint of a sandbox that had it; "" for the runtime's.
	Guest string
	// Sockets lets what may open a Unix socket in one of Mounts connect to it.
	// Under gVisor nothing else would.
	Sockets bool
	// Labels are kept beside the sandbox, so that a later process can tell
	// what it was for (for example "pool": "python").
	Labels map[string]string
}

// Usage is what a sandbox has used so far.
type Usage struct {
	CPUSeconds float64
	Memory     int64 // bytes in use that cannot be taken back, page cache left out
	PeakMemory int64 // bytes, page cache included
	OOMKills   int   // programs that the host's kernel ended because memory ran out
	Relieved   int   // programs that were ended before that, because they were the largest
}

// FormatBytes writes a size the way settings are written: "512 MiB".
func FormatBytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return strconv.FormatFloat(f, 'f', -1, 64) + " " + units[i]
}
