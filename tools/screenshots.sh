#!/bin/sh
# Photographs pictures of docs/gallery/ in headless Chromium, light and dark: NAME-light.png, NAME-dark.png.
#
#     tools/screenshots.sh [FOLDER] [NAME...]
#
# FOLDER is docs/gallery unless another is named. No test looks at what comes out; people do, and so should who changes
# how pictures look.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/docs/gallery}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] ||
  set -- 1f1b 1f1b-interleaved zbv dualpipev overlap wide many hazard race deadlock paper paper-1f1b paper-folded
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# size_of FILE ATTRIBUTE: a length of the picture in pixels of the screen; millimetres are those of paper, twice as large.
size_of() {
  sed -n "1s/.* $2=\"\([0-9.]*\)\(mm\)\{0,1\}\".*/\1 \2/p" "$1" | awk '{ print int(($2 == "mm" ? $1 * 8 : $1) + 0.999) }'
}

# shoot NAME SCHEME NUMBER: Chromium's number of the colour scheme that a page prefers.
shoot() {
  svg=$folder/$1.svg
  width=$(size_of "$svg" width) height=$(size_of "$svg" height)
  printf '<body style="margin:0"><style>svg{display:block;width:%spx;height:%spx}</style>' "$width" "$height" >"$work/page.html"
  cat "$svg" >>"$work/page.html"
  HOME=$work chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
    --blink-settings=preferredColorScheme="$3" --window-size="$width,$height" \
    --screenshot="$work/shot.png" "file://$work/page.html" >/dev/null 2>&1
  mv "$work/shot.png" "$folder/$1-$2.png"
}

for name in "$@"; do
  shoot "$name" light 1
  case $name in paper*) ;; *) shoot "$name" dark 0 ;; esac
done
