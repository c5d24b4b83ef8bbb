#!/usr/bin/env bash
# Measures reeve beside its peers in one run and prints a table with the ratios.
# The peers come from the distribution's packages.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! /usr/bin/python3 -c 'import ipykernel, jupyter_client' 2>/dev/null; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			python3-ipykernel python3-jupyter-client >/dev/null
	else
		echo "peers: install the packages python3-ipykernel and python3-jupyter-client first" >&2
		exit 1
	fi
fi

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
CGO_ENABLED=0 go build -buildvcs=false -o "$bin/peers" ./bench/peers
"$bin/peers" -python "${REEVE_PYTHON:-/usr/bin/python3}" "$@"
