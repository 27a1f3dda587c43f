// Package install tests the release files as their users would: what make install
// lays out, the Debian package in a Debian root filesystem, and the OCI image as a
// container with the privileges that docs/operate/install.md names.
package install
