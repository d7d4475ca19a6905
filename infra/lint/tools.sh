# Installs the linters that requirements.txt and package-lock.json pin, once each;
# after that they need no network. Sourced by the commands beside it, which stand
# in this folder.
# shellcheck shell=bash

# What is made by the linters: never in this folder.
work=../../.build/lint
# Where the linters written in Python are.
bin=$work/venv/bin

python_tools() {
  command -v python3 >/dev/null || { echo "${0}: needs Python 3.11 or newer" >&2; exit 1; }
  cmp -s requirements.txt "$work/requirements.txt" && return
  rm -rf "$work"
  python3 -m venv "$work/venv"
  "$bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
  cp requirements.txt "$work/requirements.txt"
}

node_tools() {
  command -v npm >/dev/null || { echo "${0}: needs Node.js 20.19 or newer, with npm" >&2; exit 1; }
  local stamp=node_modules/.signalbox-lock
  cmp -s package-lock.json "$stamp" && return
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json "$stamp"
}
