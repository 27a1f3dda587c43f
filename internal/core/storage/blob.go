package storage

import (
	"errors"
	"time"
)

// BlobInfo describes what a blob store has under a name.
type BlobInfo struct {
	Name     string
	Size     int64     // bytes
	Modified time.Time // by the store's clock
}

// ErrBlobShort says that a blob ended before the range that was asked for did.
var ErrBlobShort = errors.New("the blob is shorter than expected")
