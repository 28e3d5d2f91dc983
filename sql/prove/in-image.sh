#!/usr/bin/env bash
# Runs the tests of a package inside a container of a Postgres image, on the servers of that image.
# Usage: sql/prove/in-image.sh IMAGE PACKAGE [flag of the test binary ...]
#
# The test binary is linked statically.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage='usage: sql/prove/in-image.sh IMAGE PACKAGE [flag of the test binary ...]'
image=${1:?$usage}
package=${2:?$usage}
shift 2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kiloshard-prove-image.XXXXXX")
name=$(basename "$scratch")

clean_up() {
  docker rm --force --volumes "$name" >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

CGO_ENABLED=0 go test -c -o "$scratch/prove.test" "$package"
# In the background, since bash runs a trap only when the foreground command has ended. /tmp holds the servers' files; it is
# in memory, since the container's own file system is slow.
docker run --rm --init --name "$name" --shm-size 512m --tmpfs /tmp:exec,mode=1777 \
  --volume "$scratch/prove.test:/prove.test:ro" \
  --env PROVE --env PROVE_FULL --env CI --env KILOSHARD_RANDOM_STATEMENTS --env KILOSHARD_TORTURE \
  --entrypoint /prove.test "$image" "$@" &
wait $!
