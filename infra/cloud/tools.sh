# Installs the linters that requirements.txt and package-lock.json pin, once each;
# after that they need no network. The commands of this folder source it, and run
# in this folder.
# shellcheck shell=bash

# The linters write nothing into this folder.
work=../../.build/cloud
# The folder of the linters that are written in Python.
bin=$work/venv/bin

python_tools() {
  mkdir -p "$work"
  ../release/venv . "${bin%/bin}"
}

node_tools() {
  command -v npm >/dev/null || { echo "${0}: needs Node.js 20.19 or newer, with npm" >&2; exit 1; }
  local stamp=node_modules/.signalbox-lock
  cmp -s package-lock.json "$stamp" && return
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json "$stamp"
}
