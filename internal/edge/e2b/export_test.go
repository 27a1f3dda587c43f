package e2b

// Token makes the access token for a sandbox.
var Token = (*Door).token

// Traffic makes the traffic token for a sandbox.
var Traffic = (*Door).traffic
