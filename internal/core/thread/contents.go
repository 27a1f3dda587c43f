package thread

import "time"

// Entry describes a file or directory in a listing.
type Entry struct {
	Name      string
	Path      string // relative to the home, without a leading slash
	Size      int64  // of a file
	Modified  time.Time
	Directory bool
	Link      string // target of a symbolic link; Atoll neither follows nor reads links
}

// Quota limits a home; 0 means unlimited.
type Quota struct {
	Bytes int64 // bytes of file data; holes are free, and hard links count once
	Files int64 // entries of any kind; each name of a hard link counts
}

// MaxUpload limits a file that WriteFile writes, in bytes.
const MaxUpload = 10 << 30

// Collected says what a Collect deleted.
type Collected struct {
	States, Packs int   // removed
	Bytes         int64 // of the deleted packs and states
}
