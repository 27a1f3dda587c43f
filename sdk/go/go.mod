module github.com/atoll-run/atoll/sdk/go

go 1.25.0

require github.com/coder/websocket v1.8.15
