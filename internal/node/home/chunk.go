package home

import (
	"runtime"
	"sync"
	"unique"

	"github.com/klauspost/compress/zstd"
)

// blockSize is how a file is cut: block i is the bytes from i times blockSize on.
const blockSize = 1 << 20

// maxSegment bounds an encoded part of a tree.
const maxSegment = 8 << 20

// pack is the name of a pack: random, 32 hexadecimal digits in the blob store.
// There is one copy of each in memory.
type pack = unique.Handle[[16]byte]

// ref says where a chunk is.
type ref struct {
	sum    id
	pack   pack
	offset uint32 // in the pack
	stored uint32 // bytes there
}

// segment is an encoded part of a tree.
type segment struct {
	ref
	size uint32 // bytes of it
}

// blocks returns how many blocks of a file have data, and calls yield with the
// place of each, if it is not nil.
func (n *node) blocks(yield func(i int, off, size int64)) int64 {
	if n.extents == nil {
		count := (n.size + blockSize - 1) / blockSize
		for i := int64(0); yield != nil && i < count; i++ {
			yield(int(i), i*blockSize, min(blockSize, n.size-i*blockSize))
		}
		return count
	}
	var count int64
	last := int64(-1)
	for _, e := range n.extents {
		first, end := max(e.off/blockSize, last+1), (e.off+e.len-1)/blockSize
		if end < first {
			continue
		}
		for b := first; yield != nil && b <= end; b++ {
			yield(int(count+b-first), b*blockSize, min(blockSize, n.size-b*blockSize))
		}
		count += end - first + 1
		last = end
	}
	return count
}

// codec compresses chunks. Encoders and decoders are shared by all threads, since
// each holds megabytes.
var codec = struct {
	encoder func() *zstd.Encoder
	decoder func() *zstd.Decoder
}{
	encoder: sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderCRC(false), zstd.WithWindowSize(blockSize)) // the cipher's tag is the checksum
		if err != nil {
			panic(err) // the options are right
		}
		return e
	}),
	decoder: sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithDecoderMaxMemory(maxSegment))
		if err != nil {
			panic(err)
		}
		return d
	}),
}

// The first byte of a chunk, before it is encrypted.
const (
	chunkPlain = 0
	chunkZstd  = 1
)

// compress appends data as a chunk.
func compress(dst, data []byte) []byte {
	begin := len(dst)
	dst = codec.encoder().EncodeAll(data, append(dst, chunkZstd))
	if len(dst)-begin-1 < len(data) {
		return dst
	}
	return append(append(dst[:begin], chunkPlain), data...)
}

// decompress appends the data of a chunk, which has size bytes; any number up to
// maxSegment if size is negative.
func decompress(dst, chunk []byte, size int) ([]byte, error) {
	if len(chunk) == 0 {
		return nil, corrupt("an empty chunk")
	}
	begin := len(dst)
	switch body := chunk[1:]; chunk[0] {
	case chunkPlain:
		dst = append(dst, body...)
	case chunkZstd:
		var err error
		if dst, err = codec.decoder().DecodeAll(body, dst); err != nil {
			return nil, corrupt("a chunk: %v", err)
		}
	default:
		return nil, corrupt("a chunk of kind %d", chunk[0])
	}
	if size >= 0 && len(dst)-begin != size {
		return nil, corrupt("a chunk has %d bytes, not %d", len(dst)-begin, size)
	}
	return dst, nil
}
