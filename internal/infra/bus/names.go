package bus

// Groups of subscribers that share the messages of a subject.
const (
	startGroup   = "executors"
	gatewayGroup = "gateways"
)

// names are the subjects and streams of one installation. Several installations can use one
// NATS account, because none subscribes to a subject of another.
type names struct {
	start  string // to any executor with room
	exec   string // + executor: a start for this one
	run    string // + trace id: about a run, to the executor that has it
	turn   string // + digest: a start, or the end of the turn, to the executor that has it
	result string // + gateway + trace id
	log    string // + trace id
	news   string // + the id of a session or run that has changed
	starts string // + trace id: whether an executor starts it, see Starts
	web    string // a program's call of a service of the web, to any gateway
	webEnd string // + a random name: the call is given up

	control, command string // + server: its calls to gateways, and to executors; see call.go

	threadDeleted, tenantDeleted string // to all processes

	nodeEvents       string // + executor: a change of one of its sandboxes, see NodeEvents
	nodeEventsStream string

	results, outputs, startsStream string // streams
	turns, nodes, tickets          string // key-value buckets
}

// namesOf returns the names of an installation. The embedded server has one installation, so
// its names carry no id: "" keeps the streams of an existing data folder.
func namesOf(installation string) names {
	subject, stream := "atoll.", "ATOLL_"
	if installation != "" {
		subject += installation + "."
		stream += installation + "_"
	}
	return names{
		start: subject + "start", exec: subject + "exec.", run: subject + "run.", turn: subject + "turn.",
		result: subject + "result.", log: subject + "log.", news: subject + "news.", starts: subject + "starts.", web: subject + "web", webEnd: subject + "web.end.",
		control: subject + "control.", command: subject + "command.",
		nodeEvents: subject + "nodeevents.", nodeEventsStream: stream + "NODE_EVENTS",
		threadDeleted: subject + "thread.deleted", tenantDeleted: subject + "tenant.deleted",
		results: stream + "RESULTS", outputs: stream + "OUTPUT", startsStream: stream + "STARTS", turns: stream + "TURNS", nodes: stream + "NODES", tickets: stream + "TICKETS",
	}
}
