#!/usr/bin/env bash
# Measures a call of reeve's request tool over standard input and output beside a bare
# server of the SDK and two published servers, in one run. Arguments are passed on:
# -calls, -rounds, -starts.
set -euo pipefail
cd "$(dirname "$0")/.."

node=${REEVE_NODE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/reeve-ci/node22}
if [ ! -e "$node/node_modules/@modelcontextprotocol/server-memory" ]; then
	if command -v npm >/dev/null; then
		mkdir -p "$node"
		npm install --prefix "$node" --no-audit --no-fund --loglevel=error node@22 \
			@modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31 >&2
	else
		echo "mcp: no npm, the published servers are left out" >&2
		node=
	fi
fi

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
export CGO_ENABLED=0
go build -buildvcs=false -o "$bin/mcp" ./bench/mcp
go build -buildvcs=false -o "$bin/reeve" ./cmd/reeve
"$bin/mcp" -reeve "$bin/reeve" -node "$node" "$@"
