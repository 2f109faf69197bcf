#!/usr/bin/env bash
# Runs on a machine with a GPU what shows that verdicts and kernels are right there, and writes what
# came of it: bench/results/<device>/.
#
#   bench/gpu/gpu_report.sh --binaries build/gpu --results bench/results --commit f15c3fd
#
# Needs built programs and nothing to build with: `--binaries` is a build folder, or one folder with
# capo-fuzz, capo_gpu_tests and the benchmarks in it. Each step writes a file of its own:
#
#   about.txt           device, driver, commit, date, commands: `key: value`
#   truth.jsonl.gz      one line an order of the truth campaign, raw
#   tests.txt           the GPU tests; memcheck.txt, initcheck.txt: under compute-sanitizer
#   steps.txt           the tests of whole runs, on the device
#   products.txt ...    what each benchmark prints; prediction.txt: see prediction.sh
#   report.md           made of these by report_page.sh, which needs no GPU
#
# A campaign that was cut short goes on where truth.jsonl ends. Tested by
# tests/testing/truth/gpu_report_test.sh, without a GPU. Exit codes: 0, 1 where something is
# not as it should be (report.md says what), 2 for wrong usage, 5 without a device or a program.

set -euo pipefail
export LC_ALL=C  # numbers have points
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")

binaries='' results='' commit='' orders=5000 seed=1
only=(truth tests steps memcheck initcheck products replay prediction)

fail() {  # fail CODE MESSAGE
  printf 'gpu_report.sh: %s\n' "$2" >&2
  exit "$1"
}

while (($# > 0)); do
  (($# > 1)) || fail 2 "$1 takes a value, or is unknown"
  case $1 in
    --binaries) binaries=$2 ;;
    --results) results=$2 ;;
    --commit) commit=$2 ;;
    --orders) orders=$2 ;;
    --seed) seed=$2 ;;
    --only) read -r -a only <<<"${2//,/ }" ;;
    *) fail 2 "unknown option $1" ;;
  esac
  shift 2
done
[[ -n $binaries && -n $results && -n $commit ]] || fail 2 "--binaries, --results and --commit are needed"

# program NAME: its path, in a folder of programs or in a build folder; nothing if it is not there.
program() {
  local path
  for path in "$binaries"/{,testing/,tests/gpu/,bench/,cli/}"$1"; do
    if [[ -f $path && -x $path ]]; then
      printf '%s\n' "$path"
      return
    fi
  done
}

[[ $(nvidia-smi -L 2>/dev/null) == GPU* ]] || fail 5 "nvidia-smi lists no GPU, and this needs one"
for name in capo capo-fuzz capo_gpu_tests capo_gpu_step_tests bench_gpu_products; do
  [[ -n $(program $name) ]] || fail 5 "$name is not in $binaries"
done
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

device=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
folder=$results/$(tr '[:upper:] ' '[:lower:]-' <<<"$device")
mkdir -p "$folder"
failed=0

# wanted STEP: whether --only names it.
wanted() {
  [[ " ${only[*]} " == *" $1 "* ]]
}

# keep FILE COMMAND...: runs it, its output and exit code into the file.
keep() {
  local file=$folder/$1 code=0
  shift
  printf '==> %s\n' "$*" >&2
  {
    printf '$ %s\n' "${*//"$binaries"\//}"
    "$@" 2>&1 || code=$?
    printf 'exit code %s\n' "$code"
  } >"$file"
  ((code == 0)) || failed=1
}

about() {
  cat <<TEXT
device: $device
driver: $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)
commit: $commit
date: $(date -u +%Y-%m-%d)
command: gpu_report.sh --orders $orders --seed $seed
TEXT
}

# The campaign writes its own lines; what it prints is for whoever waits, and report.md says the
# same.
truth() {
  local code=0
  "$(program capo-fuzz)" --orders "$orders" --device cuda --against-host --seed "$seed" \
    --lines "$folder/truth.jsonl" || code=$?
  ((code != 5)) || fail 5 "the campaign could not go on"
  ((code == 0)) || failed=1
  gzip -9 -n -c "$folder/truth.jsonl" >"$folder/truth.jsonl.gz"
}

# tests NAME PROGRAM: a skipped test shows nothing.
tests() {
  keep "$1.txt" "$(program "$2")" --gtest_brief=0
  if grep -q '^\[  SKIPPED \]' "$folder/$1.txt"; then
    echo "tests were skipped, so they show nothing" >>"$folder/$1.txt"
    failed=1
  fi
}

about >"$folder/about.txt"
if wanted truth; then truth; fi
if wanted tests; then tests tests capo_gpu_tests; fi
if wanted steps; then tests steps capo_gpu_step_tests; fi
for tool in memcheck initcheck; do
  wanted $tool || continue
  [[ -x $sanitizer ]] || fail 5 "compute-sanitizer is not there"
  # Tests of failures ask CUDA for what it must refuse, which is no error of theirs.
  keep $tool.txt "$sanitizer" --tool $tool --report-api-errors no --error-exitcode 1 \
    "$(program capo_gpu_tests)" --gtest_brief=1
done
for benchmark in products replay; do
  wanted $benchmark || continue
  [[ -z $(program bench_gpu_$benchmark) ]] ||
    keep $benchmark.txt "$(program bench_gpu_$benchmark)"
done
if wanted prediction; then keep prediction.txt "$here/prediction.sh" "$(program capo)"; fi
"$here/report_page.sh" "$folder" "$(program capo-fuzz)"
((failed == 0)) || fail 1 "not all of it is as it should be: $folder/report.md"
