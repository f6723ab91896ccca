#!/usr/bin/env bash
# HTTP against nginx in the same run: requests per second of both, medians and ratios. Installs the tools it needs (not the
# services) and builds build/gyre. See bench/README.md; --help lists the options.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/deploy/lib.sh"

# shellcheck disable=SC2086
need $bench_packages python3
"$root/deploy/run" --build-only
exec python3 "$root/bench/http_bench.py" "$@"
