package sniff

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
)

const (
	recordHandshake    = 22
	messageClientHello = 1
	extServerName      = 0
	extECH             = 0xfe0d // encrypted client hello
	extESNI            = 0xffce // its first draft
)

// ErrShort is returned for the beginning of what may become a ClientHello.
var ErrShort = errors.New("more bytes are needed")

// Hello is what a TLS client has said in clear.
type Hello struct {
	ServerName string // as sent; "" if there was none
	Encrypted  bool   // another name may be in there, encrypted
	Size       int    // bytes of the records that it was in
}

// ParseHello reads the ClientHello that b begins with, however it is cut into
// records.
func ParseHello(b []byte) (Hello, error) {
	message, size, err := handshake(b)
	if err != nil {
		return Hello{}, err
	}
	var (
		h                                   = Hello{Size: size}
		version                             uint16
		random                              []byte
		session, suites, compressions, exts cryptobyte.String
	)
	s := cryptobyte.String(message)
	if !s.ReadUint16(&version) || !s.ReadBytes(&random, 32) || !s.ReadUint8LengthPrefixed(&session) ||
		!s.ReadUint16LengthPrefixed(&suites) || !s.ReadUint8LengthPrefixed(&compressions) {
		return Hello{}, errors.New("the ClientHello is cut off")
	}
	if s.Empty() {
		return h, nil
	}
	if !s.ReadUint16LengthPrefixed(&exts) || !s.Empty() {
		return Hello{}, errors.New("the extensions have the wrong length")
	}
	seen := map[uint16]bool{}
	for !exts.Empty() {
		var kind uint16
		var data cryptobyte.String
		if !exts.ReadUint16(&kind) || !exts.ReadUint16LengthPrefixed(&data) {
			return Hello{}, errors.New("an extension has the wrong length")
		}
		if seen[kind] {
			return Hello{}, fmt.Errorf("extension %d is there twice", kind)
		}
		seen[kind] = true
		switch kind {
		case extServerName:
			if h.ServerName, err = serverName(data); err != nil {
				return Hello{}, err
			}
		case extECH, extESNI:
			h.Encrypted = true
		}
	}
	return h, nil
}

// handshake joins the records that the first handshake message is in, and
// tells how long they are.
func handshake(b []byte) ([]byte, int, error) {
	var message []byte
	for s := cryptobyte.String(b); ; {
		if len(message) >= 4 {
			if message[0] != messageClientHello {
				return nil, 0, errors.New("not a ClientHello")
			}
			size := 4 + (int(message[1])<<16 | int(message[2])<<8 | int(message[3]))
			if size > MaxHello {
				return nil, 0, errors.New("the ClientHello is too long")
			}
			if len(message) == size {
				return message[4:], len(b) - len(s), nil
			}
			if len(message) > size {
				return nil, 0, errors.New("something follows the ClientHello in its record")
			}
		}
		var kind, major, minor uint8
		if !s.ReadUint8(&kind) {
			return nil, 0, ErrShort
		}
		if kind != recordHandshake {
			return nil, 0, errors.New("a record of another kind is within the ClientHello")
		}
		var part cryptobyte.String
		if !s.ReadUint8(&major) || !s.ReadUint8(&minor) || !s.ReadUint16LengthPrefixed(&part) {
			if major != 0 && major != 3 {
				return nil, 0, errors.New("not a version of TLS")
			}
			return nil, 0, ErrShort
		}
		if major != 3 || len(part) == 0 {
			return nil, 0, errors.New("a record is not TLS, or empty")
		}
		message = append(message, part...)
	}
}

func serverName(data cryptobyte.String) (string, error) {
	var list, name cryptobyte.String
	var kind uint8
	if !data.ReadUint16LengthPrefixed(&list) || !data.Empty() ||
		!list.ReadUint8(&kind) || !list.ReadUint16LengthPrefixed(&name) || !list.Empty() || kind != 0 || len(name) == 0 {
		return "", errors.New("the server name is not one name")
	}
	return string(name), nil
}
