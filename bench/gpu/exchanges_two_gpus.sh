#!/usr/bin/env bash
# Whether all-to-alls and reductions between two GPUs overlap as the timeline says.
#
#   bench/gpu/exchanges_two_gpus.sh CAPO [REPLAYS [TRANSPORT]]      TRANSPORT: nccl, or mpi to try the script on processors
#
# Measures experts, their all-to-alls and a reduction of their gradients, then runs orders of two ranks that form one group, whose
# exchanges and reductions stand with nothing beside them, beside computation of another microbatch, beside weight gradients, or around
# what experts compute on the rows that came. A
# line each: measured and simulated makespans in microseconds, the median over the replays and its error; then the share of the
# makespan in which a rank communicates and does not compute, the mean of both ranks, in the last replay and in the simulation. An
# exchange that waits for the other rank counts as one that communicates. No order begins after 140 seconds. libnccl.so.2 is that of
# CAPO_NCCL_LIBRARY, or the one that the dynamic linker finds. It is no test, and exits with 0 whatever the errors are; 5 without two
# devices.

set -euo pipefail
export LC_ALL=C NCCL_NVLS_ENABLE=0
(($# >= 1)) || {
  echo "usage: exchanges_two_gpus.sh CAPO [REPLAYS [nccl|mpi]]" >&2
  exit 2
}
capo=$1 replays=${2:-7} transport=${3:-nccl}
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
case $transport in
  nccl)
    launch=("$capo") shape='"tokens": 4096, "hidden": 7168, "ffn": 2048, "groups": 2'
    (($("$capo" devices | wc -l) >= 2)) || {
      echo "exchanges_two_gpus.sh: two CUDA devices are needed" >&2
      exit 5
    }
    ;;
  mpi) launch=(mpirun --allow-run-as-root --oversubscribe -n 2 "$capo") shape='"tokens": 64, "hidden": 64, "ffn": 64, "groups": 4' ;;
  *)
    echo "exchanges_two_gpus.sh: the transport is nccl or mpi" >&2
    exit 2
    ;;
esac

# groups FILE GROUPS: writes the experts with these groups.
groups() {
  cat >"$folder/$1.json" <<JSON
{"schema": 1, "topology": "independent", "groups": [$2], "modules": {"module": {"kind": "grouped-mlp", "dtype": "bf16",
  "shape": {$shape}, "splits": "device",
  "flags": {"fuse_wgrad_accumulation": true, "grad_added_to_main_grad": true}}}, "layers": "module"}
JSON
}
tokens='{"name": "ep", "members": [0, 1], "actions": ["dispatch-F", "combine-F", "dispatch-B", "combine-B"]}'
gradients='{"name": "dp", "members": [0, 1], "actions": ["reduce"]}'
groups experts "$tokens, $gradients"

# order NAME MICROBATCHES ACTIONS: both ranks have these. xF1.0 stands for the exchanges behind a forward of chunk 1, microbatch 0,
# and xB1.0 for those in front of its backward.
order() {
  local actions
  actions=$(sed -E 's/xF([0-9.]+)/dispatch-F\1 combine-F\1/g; s/xB([0-9.]+)/combine-B\1 dispatch-B\1/g' <<<"$3")
  printf 'capo 1\nranks 2\nmicrobatches %s\nplacement independent\nrank 0: %s\nrank 1: %s\n' "$2" "$actions" "$actions" \
    >"$folder/$1.order"
  names+=("$1")
}
names=()
order tokens-alone 3 'F1.0 xF1.0 xB1.0 B1.0 F1.1 xF1.1 xB1.1 B1.1 F1.2 xF1.2 xB1.2 B1.2'
order tokens-alone-split 3 'F1.0 xF1.0 xB1.0 B1.0 W1.0 F1.1 xF1.1 xB1.1 B1.1 W1.1 F1.2 xF1.2 xB1.2 B1.2 W1.2'
order tokens-gpipe 4 'F1.0 xF1.0 F1.1 xF1.1 F1.2 xF1.2 F1.3 xF1.3 xB1.0 B1.0 xB1.1 B1.1 xB1.2 B1.2 xB1.3 B1.3'
order tokens-1f1b 4 'F1.0 xF1.0 F1.1 xF1.1 xB1.0 B1.0 F1.2 xF1.2 xB1.1 B1.1 F1.3 xF1.3 xB1.2 B1.2 xB1.3 B1.3'
# As Megatron-LM's overlap does: exchanges of one microbatch beside the computation of another, those of B beside W.
order tokens-overlap 4 'F1.0 xF1.0 F1.1 xB1.0 xF1.1 B1.0 xB1.1 W1.0 F1.2 xF1.2 B1.1 xB1.2 W1.1 F1.3 xF1.3 B1.2 xB1.3 W1.2 B1.3 W1.3'
order tokens-beside-weights 4 'F1.0 xF1.0 xB1.0 B1.0 F1.1 xF1.1 W1.0 xB1.1 B1.1 F1.2 xF1.2 W1.1 xB1.2 B1.2 F1.3 xF1.3 W1.2 xB1.3 B1.3 W1.3'
order reduce-last 4 'F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3 reduce1'
# A reduction begins as soon as its gradients are there and those listed before it are over, so that the first here holds up the second.
order reduce-two-last 2 'F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1 reduce1 reduce2'
order reduce-beside-backward 2 'F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 reduce2 B1.0 B1.1 reduce1'
order reduce-beside-forward 2 'F2.0 F2.1 B2.0 B2.1 reduce2 F1.0 F1.1 B1.0 B1.1 reduce1'
order reduce-beside-weights 2 'F1.0 F1.1 F2.0 F2.1 B1.0 B1.1 B2.0 W2.0 B2.1 W2.1 reduce2 W1.0 W1.1 reduce1'
order both-alone 2 'F1.0 xF1.0 F1.1 xF1.1 xB1.0 B1.0 xB1.1 B1.1 reduce1'
order both-beside 2 \
  'F1.0 xF1.0 F1.1 xF1.1 F2.0 xF2.0 F2.1 xF2.1 xB2.0 B2.0 xB2.1 B2.1 reduce2 xB1.0 B1.0 xB1.1 B1.1 reduce1'

# What the experts themselves do: chunk 2 computes on the rows that came, those of the other rank among them.
order experts-between 3 \
  'F1.0 dispatch-F2.0 F2.0 combine-F2.0 F1.1 dispatch-F2.1 F2.1 combine-F2.1 F1.2 dispatch-F2.2 F2.2 combine-F2.2 combine-B2.0 B2.0 dispatch-B2.0 B1.0 combine-B2.1 B2.1 dispatch-B2.1 B1.1 combine-B2.2 B2.2 dispatch-B2.2 B1.2'
order experts-beside 3 \
  'F1.0 dispatch-F2.0 F1.1 F2.0 combine-F2.0 dispatch-F2.1 F1.2 F2.1 combine-F2.1 dispatch-F2.2 combine-B2.0 F2.2 combine-F2.2 B2.0 dispatch-B2.0 combine-B2.1 W2.0 B2.1 dispatch-B2.1 B1.0 combine-B2.2 W2.1 W1.0 B2.2 dispatch-B2.2 B1.1 W2.2 W1.1 B1.2 W1.2'

# exposed TRACE: prints the percentage of the makespan in which a rank communicates and does not compute, the mean of all ranks.
exposed() {
  python3 - "$1" <<'PYTHON'
import json
import sys

events = [event for event in json.load(open(sys.argv[1]))["traceEvents"] if event["ph"] == "X"]
busy = {}
for event in events:
    if event["cat"] not in ("communication", "forward", "backward", "weight"):
        continue
    side = event["cat"] == "communication"
    busy.setdefault(event["pid"], ([], []))[side].append((event["ts"], event["ts"] + event["dur"]))


def covered(spans):
    total, end = 0, float("-inf")
    for first, last in sorted(spans):
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total


both = [end for spans in busy.values() for side in spans for span in side for end in span]
alone = [covered(computes + communicates) - covered(computes) for computes, communicates in busy.values()]
print("%.1f" % (100 * sum(alone) / len(alone) / (max(both) - min(both))))
PYTHON
}

printf '$ exchanges_two_gpus.sh capo %s %s\n' "$replays" "$transport"
timeout 120 "${launch[@]}" measure --model "$folder/experts.json" --transport "$transport" --timeout 30 -o "$folder/tokens.json"
# An order without exchanges is one of a model that has none: there a simulation would count them to forwards and backwards.
python3 - "$folder/tokens.json" "$folder/reduce.json" <<'PYTHON'
import json
import sys

model = json.load(open(sys.argv[1]))
for exchange in ("dispatch", "combine"):
    del model["modules"]["module"]["cost"][exchange]
model["groups"] = [group for group in model["groups"] if group["name"] == "dp"]
json.dump(model, open(sys.argv[2], "w"))
PYTHON

printf '\n%-22s %12s %12s %9s %11s %11s  %s\n' order 'measured us' 'simulated us' error 'exposed' 'simulated' gradients
: >"$folder/lines"
for name in "${names[@]}"; do
  if ((SECONDS > 140)); then
    printf '%-22s left out, since 140 seconds are over\n' "$name"
    continue
  fi
  model=tokens
  [[ $name != reduce-* ]] || model=reduce
  rm -f "$folder/run.trace" "$folder/simulated.trace"
  timeout 60 "${launch[@]}" run "$folder/$name.order" --model "$folder/$model.json" --transport "$transport" --plan safe --replays "$replays" \
    --timeout 30 --sizes balanced --float64 none --no-poison --predict -o "$folder/run.trace" >"$folder/said" 2>&1 || true
  "$capo" simulate "$folder/$name.order" --model "$folder/$model.json" --trace "$folder/simulated.trace" >"$folder/simulated" 2>&1 || true
  seen=- foretold=-
  [[ ! -s $folder/run.trace ]] || seen=$(exposed "$folder/run.trace")
  [[ ! -s $folder/simulated.trace ]] || foretold=$(exposed "$folder/simulated.trace")
  awk -v name="$name" -v seen="$seen" -v foretold="$foretold" '
    /^makespan/ { measured = $2; simulated = $5; error = $8 }
    /^gradients/ { sub(/^gradients /, ""); equal = $0 }
    /error/ && !why { why = $0 }
    END { if (measured) printf "%-22s %12d %12d %7s %% %9s %% %9s %%  %s\n", name, measured, simulated, error, seen, foretold, equal
          else printf "%-22s %s\n", name, why ? why : "no figure" }' "$folder/said" | tee -a "$folder/lines"
done
awk '$5 == "%" { e = $4 < 0 ? -$4 : $4 + 0; d = $6 - $8; if (d < 0) d = -d; errors[++n] = e; apart = d > apart ? d : apart
                 if (e >= worst) { worst = e; of = $1 } if (e <= 5) ++within }
     END { if (!n) { print "no order ran"; exit }
           for (i = 1; i <= n; ++i) for (j = i + 1; j <= n; ++j) if (errors[j] < errors[i]) { t = errors[i]; errors[i] = errors[j]; errors[j] = t }
           printf "%d orders: worst %.1f %% (%s), median %.1f %%, %d within 5 %%; exposed shares at most %.1f points apart\n",
                  n, worst, of, errors[int((n + 1) / 2)], within, apart }' "$folder/lines"
