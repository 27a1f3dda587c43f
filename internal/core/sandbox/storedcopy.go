package sandbox

// StoredCopy is what the blob store has of a sandbox: its files, and its memory and
// processes unless it is of files alone.
type StoredCopy struct {
	State      string // names it in the store
	Bytes      int64  // of all of it, before it was compressed
	Disk       int64  // of them, what its files take
	Checkpoint bool
	// What its memory needs to go on.
	Kernel string // digest of gVisor's program
	Image  string // digest of the image
}
