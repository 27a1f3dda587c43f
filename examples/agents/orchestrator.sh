#!/bin/sh
# Has a project manager hand a program to be written and tested to specialists.
#
#   examples/agents/orchestrator.sh MODEL
#
# Needs a server with the model (docs/reference/models.md), and its key as any command does.
set -eu

model=${1:?the name of a model of the server}
atoll=${ATOLL:-atoll}
"$atoll" agent apply --model "$model" "$(dirname "$0")/orchestrator.yaml"
session=$("$atoll" session create example-orchestrator -q)
"$atoll" session send "$session" "Have a program written that prints the first ten prime numbers, and have it tested."
"$atoll" session events "$session"
echo "to go on: atoll chat --session $session"
