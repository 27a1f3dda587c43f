package home

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
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

// TenantKeySize is the length of a tenant's key, in bytes: its digest key, then its object key.
const TenantKeySize = 2 * KeySize

// keys are the two parts of a tenant's key.
type keys struct {
	digest []byte
	object []byte
}

// TenantKey derives the key of a tenant, of TenantKeySize bytes, from the operator's key, of KeySize
// bytes. The key reads and writes all that the tenant has in the folder of a Store. It says nothing
// about the keys of other tenants.
func TenantKey(operator []byte, tenant string) ([]byte, error) {
	if len(operator) != KeySize {
		return nil, fmt.Errorf("the operator's key has %d bytes, not %d", len(operator), KeySize)
	}
	digest, err := hkdf.Key(sha256.New, operator, nil, "atoll threads 1 digest "+tenant, KeySize)
	if err != nil {
		return nil, err
	}
	object, err := hkdf.Key(sha256.New, operator, nil, "atoll threads 1 object "+tenant, KeySize)
	if err != nil {
		return nil, err
	}
	return append(digest, object...), nil
}

// splitKey splits a copy of a tenant's key, so that the caller may reuse the bytes.
func splitKey(tenant string, key []byte) (keys, error) {
	if len(key) != TenantKeySize {
		return keys{}, fmt.Errorf("the key of the tenant %q has %d bytes, not %d", tenant, len(key), TenantKeySize)
	}
	key = bytes.Clone(key)
	return keys{digest: key[:KeySize], object: key[KeySize:]}, nil
}

func (k keys) equal(other keys) bool {
	return hmac.Equal(k.digest, other.digest) && hmac.Equal(k.object, other.object)
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
