#!/usr/bin/env bash
# HTTP against nginx in the same run: requests per second of both, medians and ratios. See bench/README.md; --help lists the options.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 bench/http_bench.py "$@"
