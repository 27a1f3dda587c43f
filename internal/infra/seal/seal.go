// Package seal encrypts small secrets for storage and authenticates tokens
// that are handed out and come back.
//
// One key of 32 bytes stands behind everything; what it is used for is derived
// from it, so that no use can be mistaken for another.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// KeySize is the length of a Box's key.
const KeySize = 32

// version begins every ciphertext, so that another scheme can be told from
// this one.
const version = 1

// ErrOpen says that a ciphertext was not made by this key for this place.
var ErrOpen = errors.New("seal: wrong key, or the data was changed or moved")

// Box seals with one key. It is safe for concurrent use.
type Box struct {
	aead        cipher.AEAD
	mac         []byte
	threads     []byte
	snapshots   []byte
	fingerprint string
	tenants     []byte

	mu     sync.Mutex
	opened map[string]cipher.AEAD // guarded by mu: by tenant
}

// New returns the Box of a key.
func New(key []byte) (*Box, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("seal: the key has %d bytes, not %d", len(key), KeySize)
	}
	secret, err := hkdf.Key(sha256.New, key, nil, "atoll secrets", 32)
	if err != nil {
		return nil, err
	}
	mac, err := hkdf.Key(sha256.New, key, nil, "atoll tokens", 32)
	if err != nil {
		return nil, err
	}
	threads, err := hkdf.Key(sha256.New, key, nil, "atoll threads", KeySize)
	if err != nil {
		return nil, err
	}
	snapshots, err := hkdf.Key(sha256.New, key, nil, "atoll snapshots", KeySize)
	if err != nil {
		return nil, err
	}
	tenants, err := hkdf.Key(sha256.New, key, nil, "atoll tenants", KeySize)
	if err != nil {
		return nil, err
	}
	mark, err := hkdf.Key(sha256.New, key, nil, "atoll fingerprint", 16)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Box{aead: aead, mac: mac, threads: threads, snapshots: snapshots, fingerprint: hex.EncodeToString(mark), tenants: tenants, opened: map[string]cipher.AEAD{}}, nil
}

// Threads is the key that saved homes are encrypted with.
func (b *Box) Threads() []byte { return b.threads }

// Snapshots is the key that kept sandboxes are encrypted with.
func (b *Box) Snapshots() []byte { return b.snapshots }

// Fingerprint tells the key from others and says nothing else about it.
func (b *Box) Fingerprint() string { return b.fingerprint }

// Seal encrypts plain for a place, such as a table and an id. Only Open with
// the same place reads it.
func (b *Box) Seal(plain []byte, place string) []byte {
	return b.aead.Seal([]byte{version}, nil, plain, []byte(place))
}

// Open decrypts what Seal made for place.
func (b *Box) Open(sealed []byte, place string) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != version {
		return nil, ErrOpen
	}
	plain, err := b.aead.Open(nil, nil, sealed[1:], []byte(place))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

// Sum authenticates data for a purpose with 16 bytes.
func (b *Box) Sum(data []byte, purpose string) []byte {
	h := hmac.New(sha256.New, b.mac)
	h.Write([]byte{byte(len(purpose))})
	h.Write([]byte(purpose))
	h.Write(data)
	return h.Sum(nil)[:16]
}

// Check reports whether sum is Sum's for data.
func (b *Box) Check(data []byte, purpose string, sum []byte) bool {
	return hmac.Equal(b.Sum(data, purpose), sum)
}

// ParseKey reads a key as people write it: 64 hexadecimal digits.
func ParseKey(s string) ([]byte, error) {
	key, err := hex.DecodeString(strings.TrimSpace(s))
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("seal: a key is %d hexadecimal digits", 2*KeySize)
	}
	return key, nil
}

// KeyFile returns the key in a file, which is made with a random one, readable
// by its owner alone, when it is not there. Two that make it at once get the
// same key.
func KeyFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKeyFile(path); err != nil {
			return nil, err
		}
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	key, err := ParseKey(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// makeKeyFile writes beside path and links, so that no process ever reads half a
// key or replaces another's.
func makeKeyFile(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	var key [KeySize]byte
	rand.Read(key[:])
	_, err = fmt.Fprintf(f, "%x\n", key)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
