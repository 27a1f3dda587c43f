module github.com/atoll-run/atoll

go 1.26
