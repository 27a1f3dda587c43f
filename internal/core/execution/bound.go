package execution

// BoundSecret is a secret that the program does not have: what it has is a
// placeholder, which the network replaces in requests to the secret's hosts.
type BoundSecret struct {
	Placeholder string
	Value       string
	Hosts       []string // names, and "*.example.com" for all below one
}
