#!/usr/bin/env bash
# How well simulations predict a step over two GPUs, with messages of NCCL between them.
#
#   bench/gpu/prediction_two_gpus.sh CAPO [REPLAYS [MODULES]]      MODULES: of linear, mlp, experts; default: all
#
# Measures three modules on one GPU and a message between the two, then runs orders that differ in schedule, microbatches,
# whole or split backwards, and in how transfers are called. A line each: measured and simulated makespans, medians over the
# replays, in microseconds, and by how much the two clocks may be off; then, for each module, the worst error, the median
# error, and whether schedules of equal work stand in the same order. libnccl.so.2 is that of CAPO_NCCL_LIBRARY, or the one
# that the dynamic linker finds. It is no test, and exits with 0 whatever the errors are; 5 without two devices.

set -euo pipefail
export LC_ALL=C NCCL_NVLS_ENABLE=0
(($# >= 1)) || {
  echo "usage: prediction_two_gpus.sh CAPO [REPLAYS [MODULES]]" >&2
  exit 2
}
capo=$1 replays=${2:-7} modules=${3:-linear mlp experts}
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
(($("$capo" devices | wc -l) >= 2)) || {
  echo "prediction_two_gpus.sh: two CUDA devices are needed" >&2
  exit 5
}

# shellcheck source=bench/gpu/model_files.sh
source "$(dirname "$0")/model_files.sh"
model linear linear 8192 8192 8192 ''
model mlp layernorm-mlp 4096 4096 14336 ''
model experts grouped-mlp 4096 7168 2048 8

make() { "$capo" generate "${@:2}" -o "$folder/$1.order" 2>/dev/null; }
for m in 4 8; do
  make "gpipe-$m" gpipe --ranks 2 --microbatches $m
  make "1f1b-$m" 1f1b --ranks 2 --microbatches $m
  make "zb-h1-$m" zb-h1 --ranks 2 --microbatches $m
  make "1f1b-interleaved-$m" 1f1b-interleaved --ranks 2 --microbatches $m --chunks 2
  make "zbv-$m" zbv --ranks 2 --microbatches $m
  make "dualpipev-$m" dualpipev --ranks 2 --microbatches $m
  make "megatron-$m" megatron --pp 2 --vp 2 --microbatches $m --rank all --format order
  make "megatron-overlap-$m" megatron --pp 2 --vp 2 --microbatches $m --overlap --delayed-wgrad --rank all --format order
done

printf '$ prediction_two_gpus.sh capo %s\n' "$replays"
for module in $modules; do
  printf '\n%s\n' "$module"
  "$capo" measure --model "$folder/$module.json" --transport nccl -o "$folder/costs.json"
  printf '%-22s %12s %12s %9s %10s\n' order 'measured us' 'simulated us' error 'clocks us'
  : >"$folder/lines"
  for path in "$folder"/*.order; do
    "$capo" run "$path" --model "$folder/costs.json" --transport nccl --plan safe --replays "$replays" --timeout 30 \
      --sizes balanced --float64 none --no-poison --predict 2>&1 |
      awk -v name="$(basename "$path" .order)" '
        /^makespan/ { measured = $2; simulated = $5; error = $8 }
        /^clocks/ { clocks = $(NF - 1) }
        /^error/ { why = $0 }
        END { if (measured) printf "%-22s %12d %12d %7s %% %10s\n", name, measured, simulated, error, clocks
              else printf "%-22s %s\n", name, why ? why : "no figure" }' | tee -a "$folder/lines" || true
  done
  awk '{ e = $4 + 0; a = e < 0 ? -e : e; if (NF == 6) { errors[++n] = a; if (a > worst) { worst = a; of = $1 } } }
       END { for (i = 1; i <= n; ++i) for (j = i + 1; j <= n; ++j) if (errors[j] < errors[i]) { t = errors[i]; errors[i] = errors[j]; errors[j] = t }
             printf "%d orders: worst %.1f %% (%s), median %.1f %%\n", n, worst, of, errors[int((n + 1) / 2)] }' "$folder/lines"
  for m in 4 8; do
    printf 'of %s microbatches, shortest first: measured' $m
    grep -E -- "-$m " "$folder/lines" | awk 'NF == 6' | sort -n -k2 | awk '{ printf " %s", $1 }'
    printf '\n%41s' simulated
    grep -E -- "-$m " "$folder/lines" | awk 'NF == 6' | sort -n -k3 | awk '{ printf " %s", $1 }'
    printf '\n'
  done
done
