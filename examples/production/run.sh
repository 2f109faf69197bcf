#!/bin/sh
# The job of a DeepSeek-V3-like model in Megatron-LM, from its flags to a verdict, a peak and a time:
# PP 8, VP 4, 64 microbatches, two layers a chunk, exchanges of experts overlapped, weight gradients
# delayed.
#
#     examples/production/run.sh [CAPO]
#
# expected.txt is what it prints. The whole takes seconds, and needs no device.
set -eu
capo=$(command -v "${1:-capo}")
case $capo in /*) ;; *) capo=$PWD/$capo ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

step() { printf '\n== %s\n' "$1"; }

"$capo" model deepseek-v3 --set expert_parallel=64 -o model.json
"$capo" generate megatron --pp 8 --vp 4 --microbatches 64 --rank all --overlap --delayed-wgrad \
  --layers 2 --format order -o job.order

step "TransformerEngine's reuse of memory, with Megatron's default calls"
"$capo" check job.order --plan te --model model.json || true

step "The same with fused calls, which are waited for at once"
"$capo" check job.order --plan te --p2p batch --model model.json

step "Memory given out so that nobody can be hurt"
"$capo" check job.order --plan safe --model model.json

step "Seconds of a step on H100s, without and with the overlap of exchanges"
"$capo" simulate job.order --model model.json --device-costs h100 | sed -n '1,16p'
"$capo" simulate job.order --model model.json --device-costs h100 --ep-overlap | sed -n '4,5p'

step "Rank 3, as a picture"
"$capo" simulate job.order --model model.json --device-costs h100 --format grid --rank 3 --width 100

# Attention and experts in turns: experts alone square what they read, and leave nothing behind a few layers.
step "A small twin of the same shape, run and compared to the bit"
"$capo" generate megatron --pp 2 --vp 2 --microbatches 4 --rank all --overlap --delayed-wgrad \
  --layers 2 --format order -o twin.order
"$capo" run twin.order --plan safe --device host \
  --modules layernorm-linear,grouped-mlp,layernorm-linear,grouped-mlp | sed '/^times:/d'
