# shellcheck shell=sh
# Sourced by make test: gives tests a TMPDIR in memory where that has 8 GiB free and lets programs run, unless the caller has set
# one. The directory is removed when the shell ends, and those of shells that were killed by the next one.
for dir in /dev/shm/kiloshard-make-*; do
  if [ -O "$dir" ] && ! kill -0 "${dir##*-}" 2>/dev/null; then rm -rf "$dir"; fi
done
dir=/dev/shm/kiloshard-make-$$
if [ -z "${TMPDIR:-}" ] &&
  [ "$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')0" -ge 83886080 ] &&
  [ "$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null)0" -ge 83886080 ] &&
  mkdir -m 1777 "$dir"; then
  trap 'rm -rf "$dir"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  printf '#!/bin/sh\n' >"$dir/program"
  chmod +x "$dir/program"
  if "$dir/program" 2>/dev/null; then export TMPDIR="$dir"; fi
fi
