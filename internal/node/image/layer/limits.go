package layer

import "github.com/atoll-run/atoll/internal/core/fault"

// Limits bound what the layers of one image may hold, together. A zero field
// means no bound.
type Limits struct {
	Bytes    int64 // of uncompressed layers, and of all files' contents
	FileSize int64 // bytes of one file
	Entries  int   // tar entries
	Path     int   // bytes of one entry's name
	Depth    int   // folders above an entry
}

// DefaultLimits hold where the operator has set no others.
func DefaultLimits() Limits {
	return Limits{
		Bytes:    20 << 30,
		FileSize: 8 << 30,
		Entries:  2_000_000,
		Path:     4096,
		Depth:    256,
	}
}

// Stats tell what was merged, and what was left out on purpose.
type Stats struct {
	Layers  int
	Entries int   // tar entries read
	Bytes   int64 // of files' contents, before later layers hid some
	Devices int   // devices, pipes and sockets left out
	SetID   int   // files that lost a set-user-id or set-group-id bit
}

func tooMany(l Limits) error {
	return fault.New(fault.Invalid, "the image has more than %d files", l.Entries)
}

func tooBig(l Limits) error {
	return fault.New(fault.Invalid, "the image is larger than %d bytes uncompressed", l.Bytes)
}
