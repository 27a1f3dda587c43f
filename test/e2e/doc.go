// Package e2e tests a real server with real sandboxes over HTTP: what running a
// program means, what limits and hostile programs do, and what is left of it
// all afterwards.
//
// ATOLL_SOAK=1 runs the long versions of the tests.
package e2e
