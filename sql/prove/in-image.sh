#!/usr/bin/env bash
# Runs the proof suite inside a container of a Postgres image, on the servers of that image.
# Usage: sql/prove/in-image.sh IMAGE [flag of the test binary ...]
#
# The test binary is linked statically; libfaketime is this machine's, built for a C library no newer than the image's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

image=${1:?usage: sql/prove/in-image.sh IMAGE [flag of the test binary ...]}
shift
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kiloshard-prove-image.XXXXXX")
name=$(basename "$scratch")

clean_up() {
  docker rm --force --volumes "$name" >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

faketime=${KILOSHARD_LIBFAKETIME:-}
for found in /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1; do
  if [[ -z $faketime && -e $found ]]; then faketime=$found; fi
done
[[ -n $faketime ]] || { echo "prove: no libfaketime.so.1: install Debian's package faketime, or set KILOSHARD_LIBFAKETIME to its path" >&2; exit 1; }

CGO_ENABLED=0 go test -c -o "$scratch/prove.test" ./sql/prove
# In the background, for a trap runs only when the command in front has ended. /tmp, where the servers' files are, is in
# memory, since the container's own file system is slow at opening files, as libfaketime does for each look at the clock.
docker run --rm --init --name "$name" --shm-size 512m --tmpfs /tmp:exec,mode=1777 \
  --volume "$scratch/prove.test:/prove.test:ro" --volume "$faketime:/libfaketime.so.1:ro" \
  --env KILOSHARD_LIBFAKETIME=/libfaketime.so.1 --env PROVE --env PROVE_FULL --env CI \
  --entrypoint /prove.test "$image" "$@" &
wait $!
