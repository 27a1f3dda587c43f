#!/bin/sh
# Asks the data analyst about a CSV file, and saves the chart that it shares.
#
#   examples/agents/analyst.sh FOLDER MODEL
#
# Needs a server with the model (docs/reference/models.md), and its key as any command does.
set -eu

folder=${1:?a folder for the chart}
model=${2:?the name of a model of the server}
atoll=${ATOLL:-atoll}
here=$(dirname "$0")
mkdir -p "$folder"
cp "$here/../sales.csv" "$folder/"

"$atoll" agent apply --model "$model" "$here/data-analyst.yaml"
session=$("$atoll" session create data-analyst --title "Sales" -q)
"$atoll" session send "$session" --file "$folder/sales.csv" \
  "sales.csv has revenue by month and region. Which month had the most in all regions together? Share a bar chart of the months as chart.svg."
"$atoll" session send "$session" "And which region had the most in that month?"
"$atoll" session files "$session" --out "$folder"
echo "to go on: atoll chat --session $session"
