#!/usr/bin/env bash
# How well simulations predict a device, over modules, schedules, halves, ranks, plans and sizes.
#
#   bench/gpu/prediction_table.sh build/gpu/cli/capo [REPLAYS]
#
# Measures three kinds of modules at toy sizes and at those of real models, then runs three schedules
# of 8 microbatches on one rank and on two, which share the device, with whole backwards and with
# split ones, under plan safe and plan te. A line each: measured and simulated makespans, medians over
# the replays, in microseconds, or why the order was not run: TransformerEngine's plan sends what may
# be overwritten. It is no test, and exits with 0 whatever the errors are; 5 without a
# device.

set -euo pipefail
export LC_ALL=C  # numbers have points
(($# >= 1)) || {
  echo "usage: prediction_table.sh CAPO [REPLAYS]" >&2
  exit 2
}
capo=$1 replays=${2:-9}
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT

# shellcheck source=bench/gpu/model_files.sh
source "$(dirname "$0")/model_files.sh"
model toy-linear linear 128 256 256 ''
model toy-mlp layernorm-mlp 128 256 512 ''
model toy-experts grouped-mlp 128 256 256 4
model real-linear linear 8192 8192 8192 ''
model real-mlp layernorm-mlp 4096 4096 14336 ''
model real-experts grouped-mlp 4096 7168 2048 8

# order SCHEDULE RANKS HALVES: writes the order, with a weight gradient right behind each backward
# where backwards are split.
order() {
  local text
  text=$("$capo" generate "$1" --ranks "$2" --microbatches 8)
  if [[ $3 == split ]]; then
    text=$(sed -E 's/B([0-9]+\.[0-9]+)/B\1 W\1/g; s/delayed none/delayed all/' <<<"$text")
  fi
  printf '%s\n' "$text" >"$folder/$1.$2.$3.order"
}
for schedule in gpipe 1f1b 1f1b-interleaved; do
  for ranks in 1 2; do
    order $schedule $ranks whole
    order $schedule $ranks split
  done
done

printf '$ prediction_table.sh capo %s\n' "$replays"
for module in toy-linear toy-mlp toy-experts real-linear real-mlp real-experts; do
  printf '\n%s\n' "$module"
  "$capo" measure --model "$folder/$module.json" --device cuda -o "$folder/costs.json"
  printf '%-18s %5s %-6s %-5s %12s %12s %8s\n' schedule ranks halves plan 'measured us' 'simulated us' error
  for path in "$folder"/*.order; do
    IFS=. read -r schedule ranks halves _ <<<"$(basename "$path")"
    for plan in safe te; do
      printf '%-18s %5s %-6s %-5s ' "$schedule" "$ranks" "$halves" "$plan"
      "$capo" run "$path" --model "$folder/costs.json" --device cuda --plan $plan --replays "$replays" \
        --sizes balanced --float64 none --no-poison --predict 2>&1 |
        awk '/^makespan/ { line = sprintf("%12d %12d %6s %%", $2, $5, $8) }
             /was not run/ { line = "  not run:" substr($0, index($0, "not run:") + 8) }
             END { print line ? line : "  no figure" }' || true
    done
  done
done
