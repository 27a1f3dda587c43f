// Package service tests a real server as a service: tenants and their limits,
// streams and webhooks, the agent tool, and what is left of it all when the
// server or its database dies in the middle.
//
// ATOLL_SOAK=1 runs the long versions of the tests.
package service
