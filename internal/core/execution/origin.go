package execution

// Origin identifies the agent, session and turn of an execution. It is zero if no model requested
// the call.
type Origin struct {
	Agent   string // id of the agent; "" for a response
	Session string // id of the agent's session, or of the response's container
	Turn    string // id of the session's turn, or of the response
	Tool    string // name of the tool that the model called
}
