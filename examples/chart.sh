#!/bin/sh
# Has a model analyse a CSV file into a chart, and saves the chart.
#
#   examples/chart.sh FOLDER [what else 'atoll ask' takes, such as --model NAME]
#
# Needs a server with a model (docs/reference/models.md), and its key as any command does.
set -eu

folder=${1:?a folder for the chart}
shift
mkdir -p "$folder"
cp "$(dirname "$0")/sales.csv" "$folder/"

"${ATOLL:-atoll}" ask --file "$folder/sales.csv" --out "$folder" "$@" \
  'sales.csv has revenue by month and region. Find the month with the most revenue in all regions together. ' \
  'Draw a bar chart of the revenue by month, with pandas and matplotlib if they are there and as an SVG by hand if not, ' \
  'and share it under the name chart.png or chart.svg. Answer with the month and its revenue.'
ls -l "$folder"/chart.*
