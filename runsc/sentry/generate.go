package main

//go:generate go run ../gen -o seccomp_amd64.go
