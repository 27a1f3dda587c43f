package sandbox

// StoredCopy describes a sandbox's state in the blob store: its files, and with Checkpoint its
// memory and processes.
type StoredCopy struct {
	State      string // name in the blob store
	Bytes      int64  // total, before compression
	Disk       int64  // part of Bytes in files
	Checkpoint bool
	// Kernel and Image are required to resume the memory.
	Kernel string // digest of the gVisor binary
	Image  string // digest of the image
}
