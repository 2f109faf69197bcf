// The rows of the canvas from top to bottom: for each picture its heading, and for each rank its
// lanes and its memory, or one thin row if the rank is folded.

const heights = { heading: 40, compute: 22, moving: 13, memory: 22, folded: 12, gap: 7 };
const computingLanes = ["compute", "wgrad", "order"];

function isComputing(picture, lane) {
  return computingLanes.includes(picture.lanes[lane][1]);
}

class Rows {
  constructor(pictures) {
    this.pictures = pictures;
    this.folded = pictures.map((picture) => new Array(picture.ranks).fill(picture.ranks > 16));
    this.gap = heights.gap + Math.max(...pictures.map((each) => each.roomForWords()));
    this.stretch = 1;
    this.place();
  }

  // Makes lanes up to twice as high where the window has room for it.
  fit(height) {
    this.stretch = 1;
    this.place();
    this.stretch = Math.max(1, Math.min(2, (height - 40) / this.height));
    this.place();
  }

  place() {
    this.rows = [];
    this.rowOfLane = this.pictures.map(() => new Map());
    this.height = 4;
    this.pictures.forEach((picture, at) => this.placePicture(picture, at));
    this.tops = this.rows.map((row) => row.top);
  }

  placePicture(picture, at) {
    this.add({ type: "heading", picture, at }, heights.heading);
    this.height += this.gap - heights.gap;
    for (let rank = 0; rank < picture.ranks; ++rank) {
      if (this.folded[at][rank]) this.placeFolded(picture, at, rank);
      else this.placeUnfolded(picture, at, rank);
    }
    this.height += this.gap;
  }

  placeFolded(picture, at, rank) {
    const computing = picture.lanesOf[rank].filter((lane) => isComputing(picture, lane));
    this.add({ type: "folded", picture, at, rank, lanes: computing }, heights.folded);
    for (const lane of picture.lanesOf[rank]) this.rowOfLane[at].set(lane, this.rows.length - 1);
    this.height += 1;
  }

  placeUnfolded(picture, at, rank) {
    const lanes = picture.lanesOf[rank];
    if (lanes.length === 0) this.add({ type: "lane", picture, at, rank, lanes, first: true }, heights.compute);
    lanes.forEach((lane, index) => {
      const height = isComputing(picture, lane) ? heights.compute : heights.moving;
      this.rowOfLane[at].set(lane, this.rows.length);
      this.add({ type: "lane", picture, at, rank, lanes: [lane], first: index === 0 }, height);
    });
    if (picture.memory.has(rank)) this.add({ type: "memory", picture, at, rank }, heights.memory);
    this.height += this.gap;
  }

  add(row, plain) {
    const height = row.type === "heading" ? plain : Math.round(plain * this.stretch);
    this.rows.push({ ...row, top: this.height, height });
    this.height += height + 1;
  }

  // The rows between two heights.
  between(top, bottom) {
    const first = Math.max(0, firstBeyond(this.tops, top, 0, this.tops.length) - 1);
    return this.rows.slice(first, firstBeyond(this.tops, bottom, 0, this.tops.length));
  }

  at(height) {
    const row = this.rows[firstBeyond(this.tops, height, 0, this.tops.length) - 1];
    return row && height <= row.top + row.height ? row : undefined;
  }

  rowOf(at, lane) {
    return this.rows[this.rowOfLane[at].get(lane)];
  }

  fold(at, rank, folded) {
    this.folded[at][rank] = folded;
    this.place();
  }

  foldAll(folded) {
    for (const ranks of this.folded) ranks.fill(folded);
    this.place();
  }
}
