#!/bin/sh
# Says within a second where Start of this package would find Postgres, without compiling anything.
# Usage: look.sh [SOURCE]; SOURCE is the only source to try, as Config.Source.
#
# Looks in the order of Start and prints the first source that may do: dsn, local, docker or download. Docker may still
# lack the image, and a download may still fail: Start reports that. If no source will do, it exits with 1, after one
# line on standard error that says what it tried and what to install.
set -u

here=$(dirname "$0")
wanted=${1:-}
oldest=15 # MinVersion
tried=

# found SOURCE: ends the search.
found() { echo "$1"; exit 0; }

# missing WHAT: notes what is missing, for the one line.
missing() { tried="${tried:+$tried, }$1"; }

# server_in DIR: whether the directory has the programs of a server that is new enough.
server_in() {
  [ -x "$1/postgres" ] && [ -x "$1/initdb" ] || return 1
  version=$("$1/postgres" --version 2>/dev/null | sed -n 's/.*(PostgreSQL) \([0-9]*\).*/\1/p')
  [ "${version:-0}" -ge "$oldest" ]
}

look_local() {
  for name in postgres initdb pg_ctl; do
    if program=$(command -v "$name") && program=$(readlink -f "$program") && server_in "$(dirname "$program")"; then
      found local
    fi
  done
  # shellcheck disable=SC2013 # one word a line, whose wildcards are to be expanded
  for dir in $(sed 's/ *#.*//' "$here/internal/binaries/usual_places.txt"); do
    if server_in "$dir"; then found local; fi
  done
  missing "no server binaries (looked for postgres and initdb, version $oldest or later, on the PATH and in the usual places)"
}

# look_docker: the places are those of testcontainers-go.
look_docker() {
  if [ -n "${DOCKER_HOST:-}" ] || [ -e "$HOME/.testcontainers.properties" ]; then found docker; fi
  user_dir=/run/user/$(id -u)
  for socket in /var/run/docker.sock "${XDG_RUNTIME_DIR:-$user_dir}/docker.sock" "$user_dir/docker.sock" \
    "$HOME/.docker/run/docker.sock" "$HOME/.docker/desktop/docker.sock"; do
    if [ -S "$socket" ] && [ -w "$socket" ]; then found docker; fi
  done
  missing "no Docker (DOCKER_HOST is not set, and there is no socket that this user may use)"
}

look_download() {
  if [ "$(id -u)" = 0 ]; then cache=/var/cache
  elif [ "$(uname)" = Darwin ]; then cache=$HOME/Library/Caches
  else cache=${XDG_CACHE_HOME:-$HOME/.cache}
  fi
  for program in "$cache"/kiloshard/postgres-*/bin/postgres; do
    if [ -x "$program" ]; then found download; fi
  done
  if why=$(repository_is_away); then missing "download: $why"; else found download; fi
}

# repository_is_away: succeeds, and prints why, if the repository of embedded-postgres does not answer. The HTTP client
# is the go command, which uses a proxy as every Go program does: it requests a module that does not exist, and 404 is an
# answer. Where this script cannot find out, it leaves the matter to Start.
repository_is_away() {
  module=github.com/fergusstrange/embedded-postgres
  source=$(cd "$here" && go mod download $module && go list -m -f '{{.Dir}}' $module) 2>/dev/null || return 1
  url=$(sed -n 's/.*binaryRepositoryURL: *"\(https[^"]*\)".*/\1/p' "$source/config.go")
  [ -n "$url" ] || return 1
  limit=
  if command -v timeout >/dev/null; then limit='timeout 3'; fi
  answer=$(cd / && GO111MODULE=on GOWORK=off GOFLAGS=-mod=mod GOPROXY=$url GONOPROXY=none GOPRIVATE='' GOSUMDB=off \
    $limit go list -m kiloshard.invalid/look@v0.0.1 2>&1)
  status=$?
  case $answer in *'404 Not Found'*) return 1 ;; esac
  if [ $status = 124 ]; then echo 'no answer in 3 s'; else echo "${answer##*\": }"; fi
}

HOME=${HOME:-/}
if [ -z "$wanted" ] && [ -n "${KILOSHARD_POSTGRES_DSN:-}" ]; then found dsn; fi
case $wanted in
  '') look_local; look_docker; look_download ;;
  local | docker | download) "look_$wanted" ;;
  *) found "$wanted" ;; # Start says whether that is a source
esac
echo "no Postgres available: $tried; install Debian's postgresql package, or Docker, or set KILOSHARD_POSTGRES_DSN" >&2
exit 1
