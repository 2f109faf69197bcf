#!/usr/bin/env bash
# Whether orders of `capo optimise` gain over two GPUs what it says that they do.
#
#   bench/gpu/optimised_two_gpus.sh CAPO [REPLAYS]
#
# Measures an MLP on one GPU and a message between two, searches the best order for these times under three limits of memory
# and placements, and runs it and the named schedules of the same work and placement, with messages of NCCL. A line each:
# measured and simulated makespans, medians over the replays, in microseconds; then the gain over 1F1B and ZB-V as it was
# foretold and as it was measured. Runs compare the gradients of every replay with eager execution to the bit. libnccl.so.2
# is that of CAPO_NCCL_LIBRARY, or the one that the dynamic linker finds. It is no test, and exits with 0 whatever the gains
# are; 5 without two devices.

set -euo pipefail
export LC_ALL=C NCCL_NVLS_ENABLE=0
(($# >= 1)) || {
  echo "usage: optimised_two_gpus.sh CAPO [REPLAYS]" >&2
  exit 2
}
capo=$1 replays=${2:-7}
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
(($("$capo" devices | wc -l) >= 2)) || {
  echo "optimised_two_gpus.sh: two CUDA devices are needed" >&2
  exit 5
}

# shellcheck source=bench/gpu/model_files.sh
source "$(dirname "$0")/model_files.sh"
model mlp layernorm-mlp 4096 4096 14336 ''

printf '$ optimised_two_gpus.sh capo %s\n\n' "$replays"
"$capo" measure --model "$folder/mlp.json" --transport nccl -o "$folder/costs.json"

# run NAME: runs the order of that name, prints its line, and keeps both times in $measured and $simulated.
run() {
  local line
  line=$("$capo" run "$folder/$1.order" --model "$folder/costs.json" --transport nccl --plan safe --replays "$replays" --timeout 30 \
    --sizes balanced --float64 none --no-poison --predict 2>&1 |
    awk '/^makespan/ { line = $2 " " $5 " " $8 } /^gradients/ { sub(/^gradients /, ""); equal = $0 } /^error/ { why = $0 }
         END { print line ? line " " equal : "0 0 " why }')
  read -r measured simulated error rest <<<"$line"
  printf '%-24s %12d %12d %7s %%  %s\n' "$1" "$measured" "$simulated" "$error" "$rest"
}

# gain OF NAMED: compares the two lines that were printed last.
gain() {
  awk -v m="$2" -v s="$3" -v mn="$4" -v sn="$5" -v of="$1" 'BEGIN {
    foretold = 100 * (1 - s / sn); seen = 100 * (1 - m / mn)
    apart = seen - foretold
    if (apart < 0) apart = -apart
    printf "%-24s foretold %5.1f %%, measured %5.1f %%, %.1f points apart\n", "  gain over " of, foretold, seen, apart }'
}

# race MEMORY CHUNKS PLACEMENT NAMED...: optimises under the limit, and holds it against schedules of the same work.
race() {
  local memory=$1 chunks=$2 placement=$3 best best_simulated named counts
  shift 3
  printf '\n%s, %s chunks a rank, 8 microbatches, memory %s\n' "$placement" "$chunks" "$memory"
  printf '%-24s %12s %12s %9s\n' order 'measured us' 'simulated us' error
  "$capo" optimise --ranks 2 --microbatches 8 --chunks "$chunks" --placement "$placement" --memory "$memory" --time 5s \
    --model "$folder/costs.json" -o "$folder/optimised.order" >"$folder/said" 2>/dev/null
  run optimised
  best=$measured best_simulated=$simulated
  for named in "$@"; do
    counts=(--ranks 2 --microbatches 8)
    [[ $named != *interleaved ]] || counts+=(--chunks "$chunks")
    "$capo" generate "$named" "${counts[@]}" -o "$folder/$named.order" 2>/dev/null
    run "$named"
    gain "$named" "$best" "$best_simulated" "$measured" "$simulated"
  done
  sed -n '/^makespan/s/^/capo optimise: /p' "$folder/said"
}
race 2 1 loop 1f1b zb-h1
race 2 2 v zbv 1f1b-v
race 2.5 2 loop 1f1b-interleaved zbv
