#!/bin/sh
# Asks a model to reproduce and fix an error in a program, and shows the change.
#
#   examples/fix.sh FOLDER [options of 'atoll ask', such as --model NAME]
#
# Needs a server with a model (docs/reference/models.md) and, like any command, its key. The script
# prints the model's code and runs it only in the sandbox.
set -eu

folder=${1:?a folder for the program}
shift
mkdir -p "$folder/fixed"
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

"${ATOLL:-atoll}" ask --file "$folder/median.py" --out "$folder/fixed" "$@" \
  'Run median.py: it fails. Explain the error, fix it without changing the assertions, run the program again until it succeeds, ' \
  'and share the fixed file as median.py.'
diff -u "$folder/median.py" "$folder/fixed/median.py" && exit 1 # nothing was fixed
exit 0
