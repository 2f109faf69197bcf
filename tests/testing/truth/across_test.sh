#!/usr/bin/env bash
# Random orders over processes: what happens is what the task graph says, and a disagreement is seen.
#
#   across_test.sh MPIRUN PROGRAM ORDERS

set -euo pipefail
export ASAN_OPTIONS=detect_leaks=0 # of what MPI leaves behind
mpirun=("$1" --allow-run-as-root --oversubscribe)
capo_fuzz=$2
orders=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  printf 'FAILED: %s\n' "$1" >&2
  cat "$folder/out" "$folder/err" >&2
  exit 1
}

says() {
  grep -qE -- "$1" "$folder/out" || fail "no \`$1\` in what was printed"
}

# Two, and four, processes: each draws orders of as many ranks as there are, or fewer.
for processes in 2 4; do
  "${mpirun[@]}" -n $processes "$capo_fuzz" --across --orders "$orders" --seed 1 \
    >"$folder/out" 2>"$folder/err" || fail "exit code $? over $processes processes"
  says "^$orders orders over processes$"
  says '^  [1-9][0-9]* accepted: finished, gradients equal to eager execution$'
  says '^  [1-9][0-9]* accepted, with reductions over all ranks: finished, walked alone$'
  says '^  [1-9][0-9]* stuck at the predicted circle of waits$'
  says '^  [1-9][0-9]* with mismatched messages, [1-9][0-9]* pairs, as predicted$'
done
