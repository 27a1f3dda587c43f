package execution

// BoundSecret is a secret that the program never sees. The program gets a placeholder, which the
// network replaces with the value in requests to the secret's hosts.
type BoundSecret struct {
	Placeholder string
	Value       string
	Hosts       []string // names, or "*.example.com" for all subdomains
}
