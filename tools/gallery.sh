#!/bin/sh
# Draws docs/gallery/ and writes docs/gallery.md, which shows it.
#
#     tools/gallery.sh CAPO [FOLDER]
#
# FOLDER is docs unless another is named. Each picture stands under the command lines that made it.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
capo=$(command -v "$1")
case $capo in /*) ;; *) capo=$PWD/$capo ;; esac
out=${2:-$root/docs}
mkdir -p "$out/gallery"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$root"/examples/te2376/*.te "$root"/examples/torch/*.csv "$work"
cd "$work"
page=$out/gallery.md
costs=f=12,b=13,w=9,comm=1

cat >"$page" <<'TEXT'
# Gallery

Made by `./dev gallery`. Every picture carries its verdict and what that is relative to; times are those of the zero-bubble
paper's examples, F 12, B 13, W 9 and a message 1, unless the command says otherwise. Bars are letters and microbatches, and
paler for later chunks; a pointer on a bar or on idle time shows times and causes where the picture is opened by itself.
TEXT

# draw NAME TITLE ARGUMENTS...: the picture NAME.svg by `capo draw`; a rejected order is drawn as well.
draw() {
  name=$1 title=$2
  shift 2
  code=0
  "$capo" draw "$@" -o "$out/gallery/$name.svg" || code=$?
  [ "$code" -le 1 ]
  printf '\n    capo draw %s -o %s.svg\n\n![%s](gallery/%s.svg)\n' "$*" "$name" "$title" "$name" >>"$page"
}

# schedule NAME WORDS [ARGUMENTS...]: a published schedule of four ranks and eight microbatches.
schedule() {
  name=$1 words=$2
  shift 2
  printf '\n### %s\n\n%s\n\n    capo generate %s --ranks 4 --microbatches 8 %s-o %s.order' "$name" "$words" "$name" \
    "${*:+$* }" "$name" >>"$page"
  "$capo" generate "$name" --ranks 4 --microbatches 8 "$@" -o "$name.order"
  draw "$name" "$name" "$name.order" --cost $costs
}

printf '\n## Published schedules\n' >>"$page"
schedule gpipe "All forwards, then all backwards (Huang et al., 2019)."
schedule 1f1b "One forward, one backward (PipeDream-Flush; Narayanan et al., 2021, figure 4 above)."
schedule 1f1b-interleaved "Two chunks a rank (Narayanan et al., 2021, figure 4 below)." --chunks 2
schedule looped-bfs "Breadth first over the chunks (Lamy-Poirier, 2023)." --chunks 2
schedule gis "Interleaved in groups, with less memory." --chunks 2
schedule seq1f1b "1F1B on halves of a sequence, numbered like microbatches."
schedule 1f1b-v "1F1B on a V: the last stage lies on the first rank."
schedule interleaved-zb "Interleaved zero bubble as PyTorch has it." --chunks 2
schedule zb-h1 "Zero bubble by hand within the memory of 1F1B (Qi et al., 2023, figure 3 above)."
schedule zb-h2 "Zero bubble by hand with twice that memory (Qi et al., 2023, figure 3 below)."
schedule zb "Zero bubble by search, here within the memory of 1F1B." --memory 4
schedule zbv "Zero bubble on a V (Qi et al., 2024)."
schedule v-half "Half the memory of 1F1B on a V."
schedule v-min "A third of it."
schedule v-adaptive "The best that is found within a memory." --memory 4
schedule dualpipe "Two directions, forwards and backwards overlapped (DeepSeek-V3)."
schedule dualpipev "The same on a V."
schedule chimera "Two directions, each 1F1B (Li and Hoefler, 2021)."
schedule hanayo "Waves (Liu et al., 2023)." --chunks 2

printf '\n## Sixteen ranks\n\n    capo generate 1f1b --ranks 16 --microbatches 32 -o wide.order' >>"$page"
"$capo" generate 1f1b --ranks 16 --microbatches 32 -o wide.order
draw wide "1F1B on sixteen ranks" wide.order --cost $costs --no-path

printf '\n## Sixty-four ranks\n\n    capo generate 1f1b --ranks 64 --microbatches 8 -o many.order' >>"$page"
"$capo" generate 1f1b --ranks 64 --microbatches 8 -o many.order
draw many "1F1B on sixty-four ranks" many.order --cost f=12,b=13,w=9 --no-path
printf '\nA long step in several lines, as wide as a screen:\n\n    capo generate 1f1b --ranks 4 --microbatches 40 -o long.order' \
  >>"$page"
"$capo" generate 1f1b --ranks 4 --microbatches 40 -o long.order
draw folded "1F1B with 48 microbatches in lines" long.order --cost $costs --no-path --fold

printf '\n## Memory: 1F1B against ZB-V and V-Half\n' >>"$page"
draw memory-zbv "1F1B above, ZB-V below" 1f1b.order --against zbv.order --cost $costs --no-path
draw memory-v-half "1F1B above, V-Half below" 1f1b.order --against v-half.order --cost $costs --no-path

printf '\n## TransformerEngine 2376, before and after\n' >>"$page"
draw te2376 "The order of the pull request without and with delayed weight gradients" order.te --against fixed.te \
  --plan te --modules linear --cost $costs --no-path --fold
printf '\nIts last backward of layer 2 written as one of layer 1:\n' >>"$page"
draw te2376-broken "An error of shape, drawn as far as the order goes" broken.te

printf '\nIts graph before and after, side by side, who overwrites what in red:\n' >>"$page"
# graph NAME TITLE ARGUMENTS...: the dependency graph, as Graphviz renders it.
graph() {
  name=$1
  shift
  "$capo" graph "$@" -o "$name.dot"
  dot -Tsvg "$name.dot" -o "$out/gallery/$name.svg"
  printf '\n    capo graph %s -o %s.dot && dot -Tsvg %s.dot -o %s.svg\n' "$*" "$name" "$name" "$name" >>"$page"
}
graph graph-before order.te --plan te --modules linear --columns 9
graph graph-after fixed.te --plan te --modules linear --columns 9
printf '\n| before | after |\n| --- | --- |\n| ![before](gallery/graph-before.svg) | ![after](gallery/graph-after.svg) |\n' >>"$page"
printf '\nThe broken order as a graph:\n' >>"$page"
graph graph-broken broken.te
printf '\n![An error of shape at its place](gallery/graph-broken.svg)\n' >>"$page"

printf '\n## Experts exchanged, with and without overlap\n' >>"$page"
draw exchange "Dispatch and combine in turn" --order 1,1,-1,-1.5,1,-1,-1.5,-1,-1.5 --cost "$costs,dispatch=3,combine=3" --no-path
draw overlap "Dispatch and combine beside the other microbatch, weight gradients on a stream of their own" --order 1,1,-1,-1.5,1,-1,-1.5,-1,-1.5 --ep-overlap --weight-stream \
  --cost "$costs,dispatch=3,combine=3" --no-path

printf '\n## A hazard, a race and a deadlock\n' >>"$page"
printf '\n`-1.5` reads an input whose memory the forward before it was given:\n' >>"$page"
draw hazard "A weight gradient reads a static input that was overwritten" --order 1,-1,1,-1.5,-1,-1.5 --plan te \
  --modules linear
printf '\nWeight gradients on a stream of their own read what the next forward writes:\n' >>"$page"
draw race "A weight gradient on its own stream races with a forward" --order 1,-1,-1.5,1,-1,-1.5 --plan te \
  --modules linear --weight-stream
printf '\nBoth ranks send first, and each send waits for a receive behind it:\n' >>"$page"
draw deadlock "Four transfers wait in a ring" both_send_first.csv

printf '\n## In print\n\nA column of a paper, without colours:\n' >>"$page"
draw paper "ZB-V a column wide" zbv.order --cost $costs --paper --no-path
printf '\nThe same folded, so that microbatches can be read:\n' >>"$page"
draw paper-folded "ZB-V a column wide, folded" zbv.order --cost $costs --paper --no-path --fold
draw paper-1f1b "1F1B a column wide" 1f1b.order --cost $costs --paper --no-path

cat >>"$page" <<'TEXT'

## Screenshots

What `tools/screenshots.sh` photographs of these pictures in headless Chromium, on a light page, on a dark one and in print.

| light | dark |
| --- | --- |
TEXT
for name in 1f1b 1f1b-interleaved zbv dualpipev overlap wide many hazard race deadlock; do
  printf '| ![%s, light](gallery/%s-light.png) | ![%s, dark](gallery/%s-dark.png) |\n' $name $name $name $name >>"$page"
done
for name in paper paper-1f1b paper-folded; do
  printf '\n![%s, in print](gallery/%s-light.png)\n' $name $name >>"$page"
done
