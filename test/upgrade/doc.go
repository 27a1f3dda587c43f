// Package upgrade tests that the current code opens, upgrades and reads databases of every schema
// since version 0.1.0.
//
// testdata has a folder for each schema version: a SQLite file and a PostgreSQL dump that the code
// of that version filled, and the data folder of a server with agents, sessions, vaults and files.
// After you add a migration and run make build, add the folder of the new version:
//
//	go test ./test/upgrade -update
//
// The command leaves existing folders alone. To write one again, delete it first; never do so for a
// released version.
package upgrade
