#!/usr/bin/env bash
# Tunes an example on this machine's GPU, then times the result beside its plain.cu and the libraries.
#   examples/tune.sh EXAMPLE DIR [WORKLOAD...] [-- OPTION...]
# EXAMPLE is a folder beside this file. DIR gets results.csv, report.html, policies/ and compare-EXAMPLE.csv.
# Without WORKLOAD all of examples/EXAMPLE/workloads are taken. OPTIONs go to `autotune sweep`, such as
# --search auto --budget 60s, or --set memory=global.
# Needs autotune with its extra [cuda], cupy, and scipy for spmv; torch, numba and nvForest where they are to be
# compared. PYTHON names the interpreter. autotune is the one installed there, else this checkout.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
usage() { sed -n '3,7s/^# *//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
example="$1" out="$2" python="${PYTHON:-python3}"
shift 2
[ -f "$here/$example/compare.py" ] || { echo "no example $example" >&2; usage; }
workloads=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do workloads+=("$1"); shift; done
[ $# -eq 0 ] || shift
if [ ${#workloads[@]} -eq 0 ]; then
  for file in "$here/$example/workloads"/*.yaml; do workloads+=("$(basename "$file" .yaml)"); done
fi
"$python" -P -c "import autotune" 2>/dev/null || export PYTHONPATH="$(dirname "$here")${PYTHONPATH:+:$PYTHONPATH}"

mkdir -p "$out"
"$python" -m autotune sweep "$here/$example" --device "${DEVICE:-cuda}" "${workloads[@]/#/--workload=}" --out "$out" \
  --policies "$out/policies" "$@"
"$python" "$here/$example/compare.py" "${workloads[@]/#/--workload=}" --policies "$out/policies" \
  --summary "$out/summary.csv" --out "$out/compare-$example.csv"
