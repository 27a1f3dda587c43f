package connections

import (
	"io"

	"github.com/atoll-run/atoll/internal/core/share"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

const (
	// FreeBytes is the size up to which a body is not counted, because the limit of connections bounds
	// bodies of that size.
	FreeBytes = 64 << 10
	// BodyCost is how often the bytes of a body are in memory while it is decoded.
	BodyCost = 2
	// MaxInflation is the largest factor by which a compressed body can grow.
	MaxInflation = 1032
)

// TenantDecoding is the dimension of the limit of bytes in decoding, which refusals name.
const TenantDecoding = "tenant_decoding_bytes"

// Bodies shares the memory for request bodies that are being decoded among tenants.
type Bodies struct{ *share.Pool }

// NewBodies divides an eighth of the memory that this process may take among the bodies that are being
// decoded. largest is the size of the largest body. A tenant may reserve half of the memory, which is
// one request on the smallest machine.
func NewBodies(memory, largest int64) Bodies {
	const most = 4 << 30
	least := 2 * (BodyCost*largest + wire.MaxValues*wire.ValueCost)
	return Bodies{share.NewPool(TenantDecoding, "bytes for request bodies", min(max(memory/8, least), most))}
}

// Take reserves bytes for a request of a tenant until release is called. It returns an Exhausted fault
// above the tenant's share. release is nil for a size that is not counted.
func (b Bodies) Take(t tenant.ID, bytes int64) (release func(), err error) {
	if bytes <= FreeBytes {
		return nil, nil
	}
	return b.Pool.Take(t, bytes)
}

// MessageSize returns the largest size of a message. size is the size of its body, negative if it is
// unknown, and most limits the size of messages.
func MessageSize(size, most int64, compressed bool) int64 {
	switch {
	case size < 0:
		return most
	case compressed:
		return min(min(size, most)*MaxInflation, most) // a client can announce any size
	}
	return min(size, most)
}

// roomEvery is how many bytes of content are read between looks at the disk.
const roomEvery = 8 << 20

// WithRoom returns a reader of content that is written to this machine's disk. It fails with the error
// of room when the disk is short of space. size is the size of all content, negative if it is unknown.
func WithRoom(content io.Reader, room func(bytes int64) error, size int64) io.Reader {
	if room == nil {
		return content
	}
	return &roomed{Reader: content, room: room, size: max(0, size)}
}

type roomed struct {
	io.Reader
	room      func(bytes int64) error
	size      int64
	read, due int64 // due is how much may be read before the next look
}

func (b *roomed) Read(p []byte) (int, error) {
	if b.read >= b.due {
		if err := b.room(max(0, b.size-b.read)); err != nil {
			return 0, err
		}
		b.due = b.read + roomEvery
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.due-b.read)])
	b.read += int64(n)
	return n, err
}
