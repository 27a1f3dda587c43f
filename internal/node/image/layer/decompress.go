package layer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// zstdWindow bounds a zstd layer's memory; encoders ask for 8 MiB as a rule
// and 128 MiB at their longest setting.
const zstdWindow = 128 << 20

// Decompress returns the content of r, which is plain, gzip or zstd as its
// first bytes say. Close it when done; r stays open.
func Decompress(r io.Reader) (io.ReadCloser, error) {
	br := bufio.NewReaderSize(r, 256<<10)
	head, err := br.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "a layer is damaged gzip")
		}
		return z, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		return z.IOReadCloser(), nil
	case bytes.HasPrefix(head, []byte("BZh")), bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return nil, fault.New(fault.Invalid, "a layer is compressed with bzip2 or xz; only gzip and zstd are read")
	default:
		return io.NopCloser(br), nil
	}
}
