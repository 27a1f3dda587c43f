package e2b

// Token makes the access token for a sandbox.
var Token = (*Handlers).token

// Traffic makes the traffic token for a sandbox.
var Traffic = (*Handlers).traffic
