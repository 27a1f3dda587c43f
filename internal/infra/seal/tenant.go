package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
)

// tenantVersion begins a ciphertext of a tenant's own key.
const tenantVersion = 2

// maxOpened bounds the tenants whose keys are kept derived.
const maxOpened = 4096

// tenant returns what seals with the key of a tenant. Each is derived from the key of the
// installation, so that there is none to keep.
func (b *Box) tenant(id string) cipher.AEAD {
	b.mu.Lock()
	defer b.mu.Unlock()
	if aead := b.opened[id]; aead != nil {
		return aead
	}
	key, err := hkdf.Key(sha256.New, b.tenants, nil, "atoll tenant "+id, KeySize)
	if err != nil {
		panic(err) // of an impossible length alone
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // likewise
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // likewise
	}
	if len(b.opened) >= maxOpened {
		clear(b.opened)
	}
	b.opened[id] = aead
	return aead
}

// SealFor encrypts plain for a place with the key of a tenant. Only OpenFor with the same
// tenant and place reads it.
func (b *Box) SealFor(tenant string, plain []byte, place string) []byte {
	return b.tenant(tenant).Seal([]byte{tenantVersion}, nil, plain, []byte(place))
}

// OpenFor decrypts what SealFor made for a tenant and a place. It reads what Seal made for
// the place, too: earlier versions had no keys of tenants.
func (b *Box) OpenFor(tenant string, sealed []byte, place string) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != tenantVersion {
		return b.Open(sealed, place)
	}
	plain, err := b.tenant(tenant).Open(nil, nil, sealed[1:], []byte(place))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}
