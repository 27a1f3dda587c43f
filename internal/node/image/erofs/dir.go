package erofs

import (
	"encoding/binary"
	"slices"
)

// File types in a folder's entries.
const (
	entryRegular = 1
	entryDir     = 2
	entrySymlink = 7
)

func entryType(n *Node) byte {
	switch n.Type() {
	case TypeDir:
		return entryDir
	case TypeSymlink:
		return entrySymlink
	default:
		return entryRegular
	}
}

// withDots returns names with "." and ".." put where byte order wants them:
// readers search folders by bisection.
func withDots(names []string) []string {
	all := make([]string, 0, len(names)+2)
	k, found := slices.BinarySearch(names, ".")
	if found {
		panic("erofs: a folder's names were not checked")
	}
	all = append(all, names[:k]...)
	all = append(all, ".")
	rest := names[k:]
	k, _ = slices.BinarySearch(rest, "..")
	all = append(all, rest[:k]...)
	all = append(all, "..")
	return append(all, rest[k:]...)
}

// splitBlocks cuts sorted names into runs that fit one block each.
func splitBlocks(names []string) [][]string {
	var runs [][]string
	start, used := 0, 0
	for k, name := range names {
		need := direntSize + len(name)
		if used+need > blockSize {
			runs = append(runs, names[start:k])
			start, used = k, 0
		}
		used += need
	}
	return append(runs, names[start:])
}

// dirSize is the size in bytes of a folder with these entries: whole blocks,
// and the used part of the last one.
func dirSize(names []string) uint64 {
	runs := splitBlocks(withDots(names))
	last := 0
	for _, name := range runs[len(runs)-1] {
		last += direntSize + len(name)
	}
	return uint64(len(runs)-1)*blockSize + uint64(last)
}

// encodeDir returns a folder's blocks.
func encodeDir(i *inode) []byte {
	runs := splitBlocks(withDots(i.names))
	out := make([]byte, len(runs)*blockSize)
	next := 0 // index into i.kids
	for r, run := range runs {
		block := out[r*blockSize : (r+1)*blockSize]
		nameOff := len(run) * direntSize
		for k, name := range run {
			var target *inode
			switch name {
			case ".":
				target = i
			case "..":
				target = i.parent
			default:
				target = i.kids[next]
				next++
			}
			d := block[k*direntSize:]
			binary.LittleEndian.PutUint64(d, target.nid)
			binary.LittleEndian.PutUint16(d[8:], uint16(nameOff))
			d[10] = entryType(target.node)
			nameOff += copy(block[nameOff:], name)
		}
	}
	return out
}
