package main

//go:generate go run ../gen -o seccomp_gen.go
