unset -v BASH_ENV
printf R >&4
# A line of its own: what is left tells process 1 that this was killed.
read -r -u 3
unset -v REPLY
. /proc/self/fd/3
exec 3<&- 4>&-
SECONDS=0
: "${BASH##*/}"
