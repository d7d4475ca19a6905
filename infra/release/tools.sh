# For the scripts of this folder, which run in the project's folder: builds tools that
# describe a binary's packages, once, into $tools.
# shellcheck shell=bash
export GOWORK=off
tools=$PWD/.build/bin
mkdir -p "$tools"
# build MODULE@VERSION PACKAGE makes a tool at its pinned version, with its own
# go.sum. `go install` would ask the proxy for a list of versions, which not every
# proxy gives.
build() {
  (cd "$(go mod download -json "$1" | sed -nE 's/^\t"Dir": "(.*)",$/\1/p')" && GOFLAGS='-mod=readonly -trimpath' go build -buildvcs=false -o "$tools/" "$2")
}
# licences runs go-licenses; our own packages have no licence file. It leaves out what is below
# GOROOT, which a program built with -trimpath does not know.
licences() { GOROOT=$(go env GOROOT) "$tools/go-licenses" "$@" --ignore signalbox.dev 2>"$tools/log" || { cat "$tools/log" >&2; return 1; }; }
build github.com/CycloneDX/cyclonedx-gomod@v1.10.0 ./cmd/cyclonedx-gomod
build github.com/google/go-licenses/v2@v2.0.1 .
