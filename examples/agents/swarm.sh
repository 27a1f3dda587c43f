#!/bin/sh
# Talks to a support desk whose agents hand the conversation to each other.
#
#   examples/agents/swarm.sh MODEL
#
# Needs a server with the model (docs/reference/models.md), and its key as any command does.
set -eu

model=${1:?the name of a model of the server}
atoll=${ATOLL:-atoll}
"$atoll" agent apply --model "$model" "$(dirname "$0")/swarm.yaml"
session=$("$atoll" session create example-triage -q)
"$atoll" session send "$session" "I was charged twice in October."
"$atoll" session send "$session" "Thank you. And the app does not start any more."
"$atoll" session events "$session"
echo "to go on: atoll chat --session $session"
