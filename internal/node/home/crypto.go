package home

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"golang.org/x/crypto/blake2b"
)

// KeySize is the length of the operator's key.
const KeySize = 32

// id names a chunk by its content: a digest that only a tenant's key gives, so
// that a reader of two tenants' chunks cannot tell that they are the same.
type id [16]byte

// keys of a tenant are derived from the operator's.
type keys struct {
	digest []byte
	object []byte
}

func deriveKeys(operator []byte, tenant string) (keys, error) {
	digest, err := hkdf.Key(sha256.New, operator, nil, "atoll threads 1 digest "+tenant, 32)
	if err != nil {
		return keys{}, err
	}
	object, err := hkdf.Key(sha256.New, operator, nil, "atoll threads 1 object "+tenant, 32)
	return keys{digest, object}, err
}

// sum returns the name of a chunk.
func (k keys) sum(data []byte) (sum id) {
	var h hash.Hash
	h, err := blake2b.New(len(sum), k.digest)
	if err != nil {
		panic(err) // the lengths are right
	}
	h.Write(data)
	h.Sum(sum[:0])
	return sum
}

// cipher encrypts the parts of one object. Its key is derived from the object's
// name, which is random and used once: a part that is moved to another object
// cannot be read, and numbers do as nonces.
func (k keys) cipher(object string) (cipher.AEAD, error) {
	key, err := hkdf.Expand(sha256.New, k.object, object, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// nonce of a part that begins at an offset of an object.
func nonce(offset int64) []byte {
	var n [12]byte
	binary.BigEndian.PutUint64(n[:], uint64(offset))
	return n[:]
}

// place binds a chunk's ciphertext to its name and length.
func place(sum id, size int) []byte {
	return fmt.Appendf(sum[:], "chunk %d", size)
}
