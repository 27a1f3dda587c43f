// Package upgrade tests that databases of every schema that was ever shipped
// are opened, brought up to date and read by the current code.
//
// testdata has a folder for each schema version, with a SQLite file and a
// PostgreSQL dump that the code of that version filled, and from 34 on the data folder of a
// server in which agents, sessions, vaults and files were made by HTTP. After adding a migration,
// and make build, run
//
//	go test ./test/upgrade -update
//
// with it, which adds the folder of the new version and leaves the others
// alone. A folder that is there already is written anew only after it has been
// removed, which is not done once its version is released.
package upgrade
