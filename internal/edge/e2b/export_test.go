package e2b

// Token makes the access token for a sandbox.
var Token = (*Door).token
