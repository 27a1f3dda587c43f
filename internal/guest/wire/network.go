package wire

// ResolverEnv is the variable that the guest is started with where its sandbox
// has a network: the address of the DNS server.
const ResolverEnv = "ATOLL_RESOLVER"

// CAFile is, in the guest's own folder, the certificates that a sandbox with a
// network trusts besides its image's. There may be none.
const CAFile = "ca.pem"

// AuthorityEnv is the variable that the guest is started with where its sandbox
// trusts the installation's certificate authority too: then it is BoundCAFile
// that holds the certificates, and it has to be there.
const AuthorityEnv = "ATOLL_AUTHORITY"

// BoundCAFile is CAFile with that authority's certificate.
const BoundCAFile = "bound-ca.pem"

// AptFile is, in the guest's own folder, the settings by which apt finds the
// server's mirror of Debian's archive. It is there where the server has one.
const AptFile = "apt.conf"

// CABundle is where the guest puts both together.
const CABundle = "/etc/ssl/certs/ca-certificates.crt"
