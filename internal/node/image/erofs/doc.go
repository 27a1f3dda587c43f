// Package erofs writes read-only EROFS images that both Linux and gVisor read, and reads
// what it wrote.
//
// It writes one subset of the format and no other: 4 KiB blocks, uncompressed,
// 64-byte inodes, and the data of every file, folder and symbolic link in
// whole blocks of its own (the format's FLAT_PLAIN layout). gVisor maps files
// straight from the image, so a file whose tail shared a block with metadata
// would end the program that maps it.
//
// What an image keeps of a file: type, permission bits, owner, modification
// time to the nanosecond, content, and hard links. Extended attributes
// (file capabilities included) have no place in the subset and are not kept.
// The same tree always gives the same bytes.
//
// An image is laid out as: superblock, inodes, blocks of folders, blocks of
// symbolic links, blocks of files. Memory use grows with the number of files,
// not with their sizes.
package erofs
