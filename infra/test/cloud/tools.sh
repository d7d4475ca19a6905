# Installs the tools that requirements.txt and package-lock.json pin, once each; after
# that they need no network. The commands of this folder source it, and run here.
# shellcheck shell=bash

export PYTHONPATH=../../cloud                   # the tool, which the tests import
# The tools write nothing into this folder.
work=../../../.build/cloud
bin=$work/linters/bin                           # the linters that are written in Python
engines=../../../.build/second-opinion/venv/bin # the environment of the engines and tests

mkdir -p "$work"

# shellcheck disable=SC2034 # for the commands that source this
linters() { ../../release/venv . "${bin%/bin}"; }
engine_tools() { ../../release/venv ../second-opinion "${engines%/bin}"; }

node_tools() {
  command -v npm >/dev/null || { echo "${0}: needs Node.js 20.19 or newer, with npm" >&2; exit 1; }
  local stamp=node_modules/.signalbox-lock
  cmp -s package-lock.json "$stamp" && return
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json "$stamp"
}
