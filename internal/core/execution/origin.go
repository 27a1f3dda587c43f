package execution

// Origin says which agent's work an execution is part of. The zero Origin is a call that no
// model asked for.
type Origin struct {
	Agent   string // id of the agent; "" for a response
	Session string // id of the agent's session; of a response, the id of its container
	Turn    string // id of the session's turn, or of the response
	Tool    string // that the model called
}
