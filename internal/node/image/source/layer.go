package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/image/layer"
)

// Layer is one layer of an image.
type Layer struct {
	Size int64 // as stored, bytes; 0 when not known

	open    func(ctx context.Context) (io.ReadCloser, error) // as stored
	stored  string                                           // sha256 of the stored bytes; "" when not known
	content string                                           // sha256 of the uncompressed bytes
}

// Open returns the layer's tar stream. Its end is io.EOF only when all digests
// fit; read to the end before believing anything. seen, which may be nil,
// hears how many stored bytes were read.
func (l Layer) Open(ctx context.Context, seen func(n int)) (io.ReadCloser, error) {
	raw, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	v := &verifier{layer: l, raw: raw, stored: sha256.New(), content: sha256.New(), seen: seen}
	v.plain, err = layer.Decompress(readerFunc(v.readStored))
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return v, nil
}

// verifier hashes a layer on its way, compressed and not.
type verifier struct {
	layer           Layer
	raw             io.ReadCloser
	plain           io.ReadCloser
	stored, content hash.Hash
	seen            func(n int)
}

func (v *verifier) readStored(p []byte) (int, error) {
	n, err := v.raw.Read(p)
	v.stored.Write(p[:n])
	if v.seen != nil {
		v.seen(n)
	}
	return n, err
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.plain.Read(p)
	v.content.Write(p[:n])
	if err == io.EOF {
		err = v.end()
	}
	return n, err
}

// end reads what may follow the compressed stream and compares the digests.
func (v *verifier) end() error {
	if _, err := io.Copy(io.Discard, readerFunc(v.readStored)); err != nil {
		return err
	}
	if want := v.layer.stored; want != "" && want != hex.EncodeToString(v.stored.Sum(nil)) {
		return fault.New(fault.Invalid, "a layer does not match its digest sha256:%s", want)
	}
	if want := v.layer.content; want != hex.EncodeToString(v.content.Sum(nil)) {
		return fault.New(fault.Invalid, "a layer's content does not match its digest sha256:%s", want)
	}
	return io.EOF
}

func (v *verifier) Close() error { return errors.Join(v.plain.Close(), v.raw.Close()) }

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// checkLayerType refuses what is no tar stream of files.
func checkLayerType(t types.MediaType) error {
	if !t.IsLayer() || !t.IsDistributable() {
		return fault.New(fault.Invalid, "a layer has the media type %q, which cannot be read", t)
	}
	return nil
}
