//go:build !amd64

package vfork

const able = false

func vfork(*cloneArgs, uintptr, *call, uintptr, *int64) int { return -1 }
