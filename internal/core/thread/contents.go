package thread

import "time"

// Entry is what a listing says of a file or folder.
type Entry struct {
	Name      string
	Path      string // from the home on, without a slash in front
	Size      int64  // of a file
	Modified  time.Time
	Directory bool
	Link      string // what a symbolic link says; such an entry is neither followed nor read
}

// Quota bounds a home; 0 is no bound.
type Quota struct {
	Bytes int64 // of its files' data; holes are free, and hard links count once
	Files int64 // entries of any kind, each name of a hard link among them
}

// MaxUpload is how many bytes a file may have that WriteFile makes.
const MaxUpload = 10 << 30

// Collected is what a Collect did.
type Collected struct {
	States, Packs int   // removed
	Bytes         int64 // of them
}
