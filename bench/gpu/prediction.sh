#!/usr/bin/env bash
# How well a simulation with measured costs predicts a device: makespans side by side.
#
#   bench/gpu/prediction.sh build/gpu/cli/capo
#
# Measures the module of examples/prediction/model.json, then runs the orders beside it, one rank
# each with a stream of computations and one of exchanges, and simulates them with what was measured.
# `overlap` is the sum of what the parts took over the makespan: what ran beside something else. Exit
# codes: 0, 1 where an error is above 5 % or less than 1.15 overlapped, 5 without a device.

set -euo pipefail
export LC_ALL=C  # numbers have points
(($# == 1)) || {
  echo "usage: prediction.sh CAPO" >&2
  exit 2
}
capo=$1
examples=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../examples/prediction
costs=$(mktemp)
trap 'rm -f -- "$costs"' EXIT

"$capo" measure --model "$examples/model.json" --device cuda -o "$costs"
printf '\n%-28s %12s %12s %8s %8s\n' order 'measured us' 'simulated us' error overlap
for order in "$examples"/*.order; do
  "$capo" run "$order" --model "$costs" --device cuda --replays 3 --sizes balanced --float64 none \
    --no-poison --predict |
    sed -nE 's/^makespan: ([0-9]+) us measured, ([0-9]+) us simulated, ([-+0-9.]+) %; parts took ([0-9.]+) of it$/\1 \2 \3 \4/p' |
    awk -v name="$(basename "$order" .order)" '
      { printf "%-28s %12d %12d %6.1f %% %8.2f\n", name, $1, $2, $3, $4
        bad = $3 > 5 || $3 < -5 || $4 < 1.15 }
      END { if (NR != 1 || bad) print name ": beyond 5 %, too little overlap, or no figure"
            exit NR != 1 || bad }' || code=1
done
exit "${code:-0}"
