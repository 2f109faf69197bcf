#!/usr/bin/env bash
# Runs over NCCL on two GPUs: schedules bit-equal to eager execution, stored tables, processes that
# stop or are killed.
#
#   bench/gpu/nccl.sh CAPO CAPO_FUZZ OUT [CASES]      writes OUT/*.txt and prints a line a case
#
# CASES: schedules, tables, across, harm; default: all of them. CAPO_ACROSS_ORDERS is how many random orders (100).
#
# libnccl.so.2 is that of CAPO_NCCL_LIBRARY, or the one that the dynamic linker finds. It ends within eight
# minutes, since every case has a limit.
set -u
capo=$1; fuzz=$2; out=$3; cases=${4:-schedules tables harm across}
here=$(cd "$(dirname "$0")" && pwd)
model=$here/nccl_model.json
stored=$here/../../tests/data/nccl_two_gpus.json
mkdir -p "$out/orders"
export NCCL_NVLS_ENABLE=0
began=$SECONDS

# say NAME WANTED CODE FILE: a line of the summary.
say() {
  local word=ok
  [[ $2 == "$3" ]] || word=WRONG
  printf '%-5s %-46s exit %s  %s\n' "$word" "$1" "$3" "$(grep -m1 -E 'gradients equal|as capo says|orders over|disagreement|^error|stuck' "$4" | cut -c1-120)" |
    tee -a "$out/summary.txt"
}

# run NAME WANTED ARGUMENTS...: capo run with them.
run() {
  local name=$1 wanted=$2; shift 2
  [[ " $* " == *" --timeout "* ]] || set -- "$@" --timeout 15
  timeout -k 5 60 "$capo" run "$@" --transport nccl --device cuda --float64 none --plan safe >"$out/$name.txt" 2>&1
  say "$name" "$wanted" $? "$out/$name.txt"
}

make() { "$capo" generate "$@" -o "$out/orders/$name.order" >/dev/null 2>"$out/orders/$name.err" || cat "$out/orders/$name.err"; }
name=1f1b;         make 1f1b --ranks 2 --microbatches 8
name=interleaved;  make 1f1b-interleaved --ranks 2 --microbatches 8 --chunks 2
name=zbv;          make zbv --ranks 2 --microbatches 8
name=dualpipev;    make dualpipev --ranks 2 --microbatches 8
name=megatron;     make megatron --pp 2 --vp 2 --microbatches 8 --overlap --delayed-wgrad --rank all --format order
name=te2376;       make megatron --pp 2 --vp 2 --microbatches 8 --overlap --delayed-wgrad --layers 1,2 --rank all --format order
name=four;         make 1f1b --ranks 4 --microbatches 8
name=four_zbv;     make zbv --ranks 4 --microbatches 8

# harm NAME SIGNAL: a process of a long run gets it.
harm() {
  "$capo" run "$out/orders/1f1b.order" --model "$model" --transport nccl --timeout 5 --float64 none --replays 1000000 >"$out/$1.txt" 2>&1 &
  local launcher=$! victim
  sleep 8
  victim=$(ps -o pid= --ppid "$launcher" | sed -n 2p)
  kill "-$2" $victim
  local since=$SECONDS
  (sleep 60 && kill -9 "$launcher") 2>/dev/null & # it ends by itself long before
  local guard=$!
  wait "$launcher"
  local code=$?
  kill $guard 2>/dev/null
  say "$1 (after $((SECONDS - since)) s)" 5 $code "$out/$1.txt"
}

schedules() {
  for name in 1f1b interleaved zbv dualpipev megatron te2376; do
    for graphs in per-action per-step; do
      run "$name.$graphs" 0 "$out/orders/$name.order" --model "$model" --graphs $graphs
    done
  done
  for layout in per-pair per-edge per-direction lazy-hybrid; do
    run "zbv.$layout" 0 "$out/orders/zbv.order" --model "$model" --comm $layout
  done
  run interleaved.json 0 "$out/orders/interleaved.order" --model "$model" --format json -o "$out/interleaved.trace.json"
  run four.two_a_device 0 "$out/orders/four.order" --model "$model" --ranks-per-device 2
  run four_zbv.two_a_device 0 "$out/orders/four_zbv.order" --model "$model" --ranks-per-device 2
  run four.too_few_devices 5 "$out/orders/four.order" --model "$model"

  # Both ranks send first: stuck over NCCL as on paper, and never longer than it was told.
  run both_send_first 1 "$here/../../examples/torch/both_send_first.csv" --comm per-pair --unchecked --timeout 3
  grep -h 'over NCCL' "$out/both_send_first.txt" | tee -a "$out/summary.txt"
}

# Neither size is buffered by communicators of eight channels. NCCL's own number of channels held 64 MiB, and 15 of
# the 108 went otherwise there.
tables() {
  for mib in 256 64; do
    timeout -k 5 150 "$fuzz" --tables "$stored" --transport nccl --message-mib $mib >"$out/tables.$mib.txt" 2>&1
    say "tables of $mib MiB" 0 $? "$out/tables.$mib.txt"
  done
}

across() {
  timeout -k 5 "${CAPO_ACROSS_SECONDS:-180}" "$fuzz" --across --orders "${CAPO_ACROSS_ORDERS:-100}" --seed 11 --transport nccl >"$out/across.txt" 2>&1
  say "random orders across" 0 $? "$out/across.txt"
}

if [[ $cases == *schedules* ]]; then schedules; fi
if [[ $cases == *tables* ]]; then tables; fi
if [[ $cases == *harm* ]]; then
  harm killed KILL
  harm stopped STOP
fi
if [[ $cases == *across* ]]; then across; fi
echo "processes left: $(pgrep -c -x capo)" | tee -a "$out/summary.txt"
echo "$((SECONDS - began)) s in all" | tee -a "$out/summary.txt"
