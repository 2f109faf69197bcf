#!/usr/bin/env bash
# Makes report.md of what gpu_report.sh left, and of nothing else: no GPU is needed.
#
#   bench/gpu/report_page.sh bench/results/nvidia-h200 build/ci/testing/capo-fuzz
#
# Tested by tests/testing/truth/gpu_report_test.sh.

set -euo pipefail
(($# == 2)) || {
  echo "usage: report_page.sh FOLDER CAPO_FUZZ" >&2
  exit 2
}
folder=$1 capo_fuzz=$2

# section TITLE FILE: the end of what a step printed, where it ran.
section() {
  [[ -f $folder/$2 ]] || return 0
  printf '## %s\n\n```\n' "$1"
  head -n 1 "$folder/$2"
  sed 1d "$folder/$2" | grep -E '^\[  (PASSED|SKIPPED|FAILED) |ERROR SUMMARY|exit code|skipped' || true
  printf '```\n\n'
}

# whole TITLE FILE: all of it.
whole() {
  [[ -f $folder/$2 ]] || return 0
  printf '## %s\n\n```\n' "$1"
  cat "$folder/$2"
  printf '```\n\n'
}

page=$(mktemp "$folder/report.XXXXXX")
trap 'rm -f -- "$page"' EXIT
{
  printf '<!-- Made by bench/gpu/report_page.sh from the files beside it. -->\n\n'
  if [[ -f $folder/truth.jsonl.gz ]]; then
    # Exit code 1 says that some disagree; the page says so too.
    gzip -dc "$folder/truth.jsonl.gz" |
      { "$capo_fuzz" --report /dev/stdin --about "$folder/about.txt" || (($? == 1)); }
  fi
  section 'GPU tests' tests.txt
  section 'Whole runs' steps.txt
  section 'compute-sanitizer memcheck' memcheck.txt
  section 'compute-sanitizer initcheck' initcheck.txt
  whole 'Products' products.txt
  whole 'Replay' replay.txt
  whole 'Prediction' prediction.txt
} >"$page"
chmod 644 "$page"
mv -- "$page" "$folder/report.md"
trap - EXIT
