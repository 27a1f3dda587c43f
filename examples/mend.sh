#!/bin/sh
# Has a model reproduce an error of a program and mend it, and shows what it changed.
#
#   examples/mend.sh FOLDER [what else 'atoll ask' takes, such as --model NAME]
#
# Needs a server with a model (docs/reference/models.md), and its key as any command does. What the
# model wrote is shown here, and runs in the sandbox alone.
set -eu

folder=${1:?a folder for the program}
shift
mkdir -p "$folder/mended"
cat >"$folder/median.py" <<'PY'
def median(numbers):
    numbers.sort()
    middle = len(numbers) / 2
    if len(numbers) % 2:
        return numbers[middle]
    return (numbers[middle - 1] + numbers[middle]) / 2


assert median([3, 1, 2]) == 2
assert median([4, 1, 3, 2]) == 2.5
print("well")
PY

"${ATOLL:-atoll}" ask --file "$folder/median.py" --out "$folder/mended" "$@" \
  'Run median.py: it fails. Say which error it has, mend it without changing its assertions, run it again until it ends well, ' \
  'and share the mended file as median.py.'
diff -u "$folder/median.py" "$folder/mended/median.py" && exit 1 # nothing was mended
exit 0
