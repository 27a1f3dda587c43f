package erofs

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	superMagic = 0xe0f5e1e2

	featureChecksum = 1 << 0 // the superblock carries a checksum
	featureMtime    = 1 << 1 // inodes carry modification times, not change times

	formatExtended = 1 // 64-byte inode; the data layout bits stay 0: FLAT_PLAIN
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeInode writes i's on-disk form to the first 64 bytes of b.
func encodeInode(b []byte, i *inode, number uint32) {
	le := binary.LittleEndian
	n := i.node
	le.PutUint16(b[0:], formatExtended)
	le.PutUint16(b[4:], n.Mode)
	le.PutUint64(b[8:], i.size)
	le.PutUint32(b[16:], i.block)
	le.PutUint32(b[20:], number)
	le.PutUint32(b[24:], n.UID)
	le.PutUint32(b[28:], n.GID)
	le.PutUint64(b[32:], uint64(n.Mtime))
	le.PutUint32(b[40:], n.MtimeNsec)
	le.PutUint32(b[44:], i.links)
}

// encodeMeta returns the image's first blocks: superblock and inodes.
func encodeMeta(l *layout) []byte {
	size := rootOffset + inodeSize*len(l.inodes)
	meta := make([]byte, (size+blockSize-1)/blockSize*blockSize)
	for k, i := range l.inodes {
		encodeInode(meta[rootOffset+k*inodeSize:], i, uint32(k+1))
	}
	encodeSuper(meta[:blockSize], l)
	return meta
}

// encodeSuper fills in the superblock of the first block, whose inodes are
// already there: the checksum covers them.
func encodeSuper(block []byte, l *layout) {
	le := binary.LittleEndian
	sb := block[superOffset:]
	le.PutUint32(sb[0:], superMagic)
	le.PutUint32(sb[8:], featureChecksum|featureMtime)
	sb[12] = blockBits
	le.PutUint16(sb[14:], uint16(l.inodes[0].nid))
	le.PutUint64(sb[16:], uint64(len(l.inodes)))
	le.PutUint32(sb[36:], l.blocks)
	// The build time, the UUID and the volume's name stay 0: equal trees give
	// equal images.
	le.PutUint32(sb[4:], ^crc32.Checksum(sb, castagnoli))
}
