#!/usr/bin/env bash
# Runs the proof suite inside a container of a Postgres image, on the servers of that image.
# Usage: sql/prove/in-image.sh IMAGE [flag of the test binary ...]
#
# The test binary is linked statically. The model needs no server: it runs here, first.
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

go test -v -count=1 ./sql/prove/model
CGO_ENABLED=0 go test -c -o "$scratch/prove.test" ./sql/prove
# In the background, since bash runs a trap only when the foreground command has ended. /tmp holds the servers' files; it is
# in memory, since the container's own file system is slow.
docker run --rm --init --name "$name" --shm-size 512m --tmpfs /tmp:exec,mode=1777 \
  --volume "$scratch/prove.test:/prove.test:ro" \
  --env PROVE --env PROVE_FULL --env CI \
  --entrypoint /prove.test "$image" "$@" &
wait $!
