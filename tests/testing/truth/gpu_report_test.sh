#!/usr/bin/env bash
# bench/gpu/gpu_report.sh and report_page.sh on a machine without a GPU: what asks for one is played
# by scripts in a folder of its own, and the campaign runs on the host engine.
#
#   gpu_report_test.sh SOURCE_DIR CAPO_FUZZ

set -euo pipefail
source_dir=$1 capo_fuzz=$2
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
mkdir "$folder/bin" "$folder/results"

fail() {
  printf 'FAILED: %s\n' "$1" >&2
  exit 1
}

# plays NAME TEXT: a program that is this script.
plays() {
  printf '#!/bin/sh\n%s\n' "$2" >"$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}

# expect CODE COMMAND...
expect() {
  local wanted=$1 code=0
  shift
  "$@" >"$folder/out" 2>&1 || code=$?
  ((code == wanted)) || {
    cat "$folder/out" >&2
    fail "exit code $code and not $wanted: $*"
  }
}

# has TEXT: report.md says so.
has() {
  grep -qF -- "$1" "$folder/results/a-device/report.md" || {
    cat "$folder/results/a-device/report.md" >&2
    fail "report.md does not say: $1"
  }
}

report=("$source_dir/bench/gpu/gpu_report.sh" --binaries "$folder/bin" --results "$folder/results"
  --commit abc --orders 6)
export PATH=$folder/bin:$PATH

plays nvidia-smi 'exit 9'
expect 5 "${report[@]}"
expect 2 "${report[@]}" --unknown value

plays nvidia-smi 'case $1 in
  -L) echo "GPU 0: A Device" ;;
  --query-gpu=name) echo "A Device" ;;
  *) echo 1.2.3 ;;
esac'
expect 5 "${report[@]}"  # no programs yet
plays capo-fuzz "exec '$capo_fuzz' \$(printf '%s\n' \"\$@\" | sed s/cuda/host/)"
plays capo_gpu_tests 'echo "[  PASSED  ] 7 tests."'
plays capo_gpu_step_tests 'echo "[  PASSED  ] 8 tests."'
plays capo 'case $1 in run) echo "makespan: 100 us measured, 98 us simulated, -2.0 %; parts took 1.30 of it" ;; esac'
plays bench_gpu_products 'echo "a table"'
plays compute-sanitizer 'echo "========= ERROR SUMMARY: 0 errors"'
expect 0 "${report[@]}"
for text in '| device | A Device |' '| driver | 1.2.3 |' '| commit | abc |' '6 orders.' \
  '[  PASSED  ] 7 tests.' '[  PASSED  ] 8 tests.' 'two_chunks_in_fours                   100           98   -2.0 %     1.30' 'ERROR SUMMARY: 0 errors' 'a table' '| per-action |'; do
  has "$text"
done

# Made again of its files, it is the same.
cp "$folder/results/a-device/report.md" "$folder/first.md"
rm "$folder/results/a-device/truth.jsonl"
expect 0 "$source_dir/bench/gpu/report_page.sh" "$folder/results/a-device" "$capo_fuzz"
cmp "$folder/first.md" "$folder/results/a-device/report.md" || fail "the report is another one"

# A campaign in which some disagree has a report; what is no campaign has none.
gzip -dc "$folder/results/a-device/truth.jsonl.gz" | sed '3s/"came":"[a-z-]*"/"came":"disagrees"/' |
  gzip -9 -n >"$folder/disagrees.gz"
mkdir "$folder/other"
cp "$folder/results/a-device/about.txt" "$folder/other"
cp "$folder/disagrees.gz" "$folder/other/truth.jsonl.gz"
expect 0 "$source_dir/bench/gpu/report_page.sh" "$folder/other" "$capo_fuzz"
grep -qF 'disagreements 1' "$folder/other/report.md" || fail "the report does not say what disagrees"
gzip -n </dev/null >"$folder/other/truth.jsonl.gz"
expect 1 "$source_dir/bench/gpu/report_page.sh" "$folder/other" "$capo_fuzz"

# What fails is in the report, and in the exit code; so is what was skipped.
plays compute-sanitizer 'echo "========= ERROR SUMMARY: 1 error"; exit 1'
expect 1 "${report[@]}" --only memcheck
has 'ERROR SUMMARY: 1 error'
plays capo 'case $1 in run) echo "makespan: 100 us measured, 94 us simulated, -6.0 %; parts took 1.30 of it" ;; esac'
expect 1 "${report[@]}" --only prediction
has 'beyond 5 %'
plays capo_gpu_tests 'echo "[  SKIPPED ] Some.Test"'
expect 1 "${report[@]}" --only tests
has 'tests were skipped'
echo "gpu_report.sh and report_page.sh do what they say"
