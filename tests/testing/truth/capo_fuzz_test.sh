#!/usr/bin/env bash
# The command line of capo-fuzz: exit codes, and where it says what.
#
#   capo_fuzz_test.sh PROGRAM
#
# What it draws, judges and resumes is tested in C++ beside this file.

set -euo pipefail
capo_fuzz=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  printf 'FAILED: %s\n' "$1" >&2
  cat "$folder/out" "$folder/err" >&2
  exit 1
}

# expect CODE OPTIONS...
expect() {
  local code=$1 came=0
  shift
  "$capo_fuzz" "$@" >"$folder/out" 2>"$folder/err" || came=$?
  ((came == code)) || fail "exit code $came of capo-fuzz $*, not $code"
}

# says STREAM TEXT: in what the last command printed there.
says() {
  grep -qF -- "$2" "$folder/$1" || fail "no \`$2\` on $1"
}

expect 0 --help
says out --orders
for wrong in --bogus '--jobs 0' '--jobs 257' '--device x' '--orders many' '--orders -1' '--seed -1' '--orders 1.5' \
  '--orders 18446744073709551616' '--seed 99999999999999999999' '--float64 never' '--device cuda --jobs 2'; do
  # shellcheck disable=SC2086 # each is an option and its value
  expect 2 $wrong
  [[ ! -s $folder/out && -s $folder/err ]] || fail "what is wrong with $wrong belongs on standard error alone"
done

lines=$folder/lines.jsonl
expect 0 --orders 3 --seed 1 --jobs 256 --lines "$lines"
says out '3 orders on host, seed 1'
says out 'disagreements 0'
says err '3 of 3 orders'
expect 0 --orders 5 --seed 1 --lines "$lines"
says err 'went on behind 3 orders'
expect 0 --report "$lines"
says out '5 orders'

# What is there is not thrown away where fewer are asked for.
expect 0 --orders 2 --seed 1 --lines "$lines"
says out 'there were 5 orders already, more than the 2 asked for; all are counted'
says out '5 orders on host, seed 1'
expect 0 --orders 1 --seed 18446744073709551615

expect 3 --orders 5 --seed 2 --lines "$lines"
expect 3 --report "$folder/none"
says err "cannot read $folder/none"
expect 3 --report "$lines" --about "$folder/none"

# A line that disagrees, and is not the last: those are judged again.
sed '3s/"came":"[a-z-]*"/"came":"disagrees"/' "$lines" >"$folder/disagrees.jsonl"
expect 1 --report "$folder/disagrees.jsonl"
says out '5 orders'
says out 'disagreements 1'
expect 1 --orders 5 --seed 1 --lines "$folder/disagrees.jsonl"

# What is no campaign's, with the line that shows it.
: >"$folder/empty"
expect 3 --report "$folder/empty"
says err 'error: line 1 is not the header of a campaign'
sed '4s/"verdict":"[a-z]*"/"verdict":"perhaps"/' "$lines" >"$folder/perhaps.jsonl"
expect 3 --report "$folder/perhaps.jsonl"
says err "error: line 4 is none of a campaign's"
expect 3 --orders 5 --seed 1 --lines "$folder/perhaps.jsonl"
says err "line 4 is none of a campaign's"
[[ ! -s $folder/out ]] || fail 'lines that cannot be read come to nothing'
expect 3 --report /dev/zero
mkfifo "$folder/pipe"
for odd in "$folder/pipe" /dev/full "$folder"; do
  expect 3 --orders 1 --lines "$odd"
  says err "error: $odd: this is no regular file"
done

# A file that somebody else adds to; flock is theirs.
code=0
flock "$lines" "$capo_fuzz" --orders 6 --seed 1 --lines "$lines" >"$folder/out" 2>"$folder/err" || code=$?
((code == 5)) || fail "exit code $code beside another campaign"
says err "error: $lines: another capo-fuzz adds lines to it"
expect 0 --orders 6 --seed 1 --lines "$lines"

# A stream that takes nothing ends it, and not by a signal.
"$capo_fuzz" --orders 1 >/dev/full 2>"$folder/err" && fail "lost output is no success"
says err 'error: standard output takes no more'
code=0
"$capo_fuzz" --orders 1 >"$folder/out" 2>/dev/full || code=$?
((code == 5)) || fail "exit code $code without standard error"
echo "capo-fuzz does what its command line says"
