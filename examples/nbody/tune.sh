#!/usr/bin/env bash
# Tunes the kernel on this machine's GPU for every workload, then times it beside plain.cu and torch and numba.
#   examples/nbody/tune.sh DIR     writes results.csv, report.html, the policy file and compare-*.csv into DIR
# Needs autotune with its extra [cuda], CuPy; torch and numba where they are to be compared. PYTHON names the interpreter.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
out="${1:?give a folder for the results}"
python="${PYTHON:-python3}"
workloads=(plummer-2k plummer-16k plummer-64k)

"$python" -m autotune sweep "$here" --device cuda "${workloads[@]/#/--workload=}" --out "$out" --policies "$out/policies"
for workload in "${workloads[@]}"; do
  "$python" "$here/compare.py" --workload "$workload" --policies "$out/policies" --out "$out/compare-$workload.csv"
done
