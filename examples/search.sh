#!/bin/sh
# Has a model search the web by a program in its sandbox, which computes on what it finds.
#
#   examples/search.sh FOLDER [what else 'atoll ask' takes, such as --model NAME]
#
# Needs a server with a model (docs/reference/models.md) and a search provider (docs/reference/web.md), and its
# key as any command does. The sandbox needs no network.
set -eu

folder=${1:?a folder for the table}
shift
mkdir -p "$folder"
"${ATOLL:-atoll}" ask --out "$folder" "$@" \
  'Search the web for "atolls", for "reefs" and for "lagoons" with the Python module atoll_web, in one program in the sandbox. ' \
  'Have it count the pages that it finds, each once, by the host of their URL, and write the table domains.csv with the columns ' \
  'host and pages, the most first. Share the table, and answer with its first line.'
cat "$folder/domains.csv"
