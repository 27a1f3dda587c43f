package sqldb

import (
	"encoding/json"

	"github.com/klauspost/compress/zstd"
)

// SealText encrypts a text for a place. It returns nil for "".
func (db *DB) SealText(plain, place string) []byte {
	if plain == "" {
		return nil
	}
	return db.Seal.Seal([]byte(plain), place)
}

// OpenText returns a text that SealText has encrypted.
func (db *DB) OpenText(sealed []byte, place string) (string, error) {
	if len(sealed) == 0 {
		return "", nil
	}
	plain, err := db.Seal.Open(sealed, place)
	return string(plain), err
}

// SealJSON encodes a value as JSON and encrypts it with the key of a tenant.
func (db *DB) SealJSON(tenant string, v any, place string) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return db.Seal.SealFor(tenant, plain, place), nil
}

// OpenJSON decodes a value that SealJSON has sealed.
func (db *DB) OpenJSON(tenant string, sealed []byte, place string, into any) error {
	plain, err := db.Seal.OpenFor(tenant, sealed, place)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, into)
}

// maxPacked bounds packed data as JSON, in bytes. It exceeds every request and answer.
const maxPacked = 64 << 20

var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxPacked))
)

// SealPacked is SealJSON for long values, which it compresses.
func (db *DB) SealPacked(tenant string, v any, place string) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return db.Seal.SealFor(tenant, packer.EncodeAll(plain, nil), place), nil
}

// OpenPacked returns the JSON of a value that SealPacked has sealed.
func (db *DB) OpenPacked(tenant string, sealed []byte, place string) ([]byte, error) {
	packed, err := db.Seal.OpenFor(tenant, sealed, place)
	if err != nil {
		return nil, err
	}
	return unpacker.DecodeAll(packed, nil)
}
