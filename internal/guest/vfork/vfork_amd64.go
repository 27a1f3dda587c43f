package vfork

const able = true

// vfork makes a child by clone3(2), which makes calls one after the other until one
// fails: then it notes what that returned, and how many were left, and ends. It returns
// the child's process id, or a negative number.
//
//go:noescape
func vfork(args *cloneArgs, size uintptr, calls *call, count uintptr, failed *int64) int
