#!/usr/bin/env bash
# Stored tables over MPI: each does what it did on two GPUs and what capo says, and a table that does not is seen.
#
#   tables_test.sh MPIRUN PROGRAM TABLES

set -euo pipefail
export ASAN_OPTIONS=detect_leaks=0 # of what MPI leaves behind
mpirun=("$1" --allow-run-as-root --oversubscribe -n 2)
capo_fuzz=$2
tables=$3
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

"${mpirun[@]}" "$capo_fuzz" --tables "$tables" >"$folder/out" 2>"$folder/err" || fail "exit code $?"
says '^108 tables and layouts: 85 finished, 18 hung, 5 mispaired$'
says '^108 of 108 as two GPUs did, 108 of 108 as capo says$'

# If two GPUs are said to have done otherwise, that is told, and no disagreement with capo.
sed 's/"per-pair":{"256MiB":"hangs"/"per-pair":{"256MiB":"finishes"/' "$tables" >"$folder/other.json"
"${mpirun[@]}" "$capo_fuzz" --tables "$folder/other.json" >"$folder/out" 2>"$folder/err" || fail "exit code $?"
says ': hangs, stored finishes, capo says hangs$'
says '^90 of 108 as two GPUs did, 108 of 108 as capo says$'

printf '{"rows":[{}]}' >"$folder/bad.json"
if "${mpirun[@]}" "$capo_fuzz" --tables "$folder/bad.json" >"$folder/out" 2>"$folder/err"; then
  fail "accepted a row without cells"
fi
grep -q '^error: ' "$folder/err" || fail "no error was told"
