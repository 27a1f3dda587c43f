package repeats

// operations are the operations that take an Idempotency-Key through this package: a second one would
// create, or run, something more. Executions have their own keys. Client libraries send a key on their
// own with those that are true, which create something and answer. The others work for as long as their
// client waits, or read what it streams: a key there says that the work continues without the client,
// which only the caller knows.
var operations = map[string]bool{
	"createSandbox": true, "forkSandbox": true, "createSnapshot": true, "startProcess": true, "createContext": true, "createContainer": true,
	"createSession": true, "createSessionDefault": true, "sendSessionEvent": true, "sendSessionEventDefault": true,
	"createAgent": true, "createAgentDefault": true, "copyAgent": true, "copyAgentDefault": true, "createVault": true, "createVaultCredential": true,

	"writeProcess": false, "runContext": false, "createResponse": false, "createAgentResponse": false,
	"executeCode": false, "tool_execute_code": false, "tool_shell": false, "search": false, "fetch": false,
}

// Operation reports whether an operation takes an Idempotency-Key through this package, and whether
// client libraries send one on their own.
func Operation(id string) (takes, automatic bool) {
	automatic, takes = operations[id]
	return takes, automatic
}

// Operations returns the number of operations that take an Idempotency-Key through this package.
func Operations() int { return len(operations) }
