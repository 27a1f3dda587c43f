#!/bin/sh
# Has the coding agent mend a repository, and applies the patch that it shares.
#
#   examples/agents/coder.sh FOLDER MODEL
#
# Needs git, a server with the model (docs/reference/models.md), and its key as any command does. The
# repository goes to the sandbox as a git bundle, so that no network is needed.
set -eu

folder=${1:?a folder for the repository}
model=${2:?the name of a model of the server}
atoll=${ATOLL:-atoll}
here=$(dirname "$0")
repository=$folder/median
rm -rf "$repository"
mkdir -p "$repository"
cat >"$repository/median.py" <<'PY'
def median(numbers):
    numbers = sorted(numbers)
    middle = len(numbers) / 2
    if len(numbers) % 2:
        return numbers[middle]
    return (numbers[middle - 1] + numbers[middle]) / 2
PY
cat >"$repository/test_median.py" <<'PY'
import unittest

from median import median


class TestMedian(unittest.TestCase):
    def test_odd(self):
        self.assertEqual(median([3, 1, 2]), 2)

    def test_even(self):
        self.assertEqual(median([4, 1, 3, 2]), 2.5)
PY
git -C "$repository" init -q -b main
git -C "$repository" add .
git -C "$repository" -c user.name=example -c user.email=example@example.com commit -q -m "median: a median"
git -C "$repository" bundle create -q ../median.bundle HEAD main

"$atoll" agent apply --model "$model" "$here/coding-agent.yaml"
session=$("$atoll" session create coding-agent --title "Mend the median" -q)
"$atoll" session send "$session" --file "$folder/median.bundle" \
  "Clone median.bundle, run its tests with python3 -m unittest, mend what fails, and share the patch as mend.patch."
"$atoll" session files "$session" --out "$folder"
git -C "$repository" -c user.name=example -c user.email=example@example.com am -q ../mend.patch
git -C "$repository" log --oneline
(cd "$repository" && python3 -m unittest -q)
