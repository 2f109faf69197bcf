// Paints a view. A task that is wide enough is a bar of its own; narrower ones are mixed into a strip,
// one pixel high and stretched to its row, so that a frame costs what the window has of pixels and not
// what the step has of tasks.

const leastBar = 3;  // pixels
const mostBubbles = 200;  // of a rank that are looked at by their length
const mostDetailed = 1200;  // bars with outlines and labels, which take longest

class Strip {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.pen = this.canvas.getContext("2d", { willReadFrequently: true });
    this.lines = [];
  }

  begin(width, rows) {
    this.width = Math.ceil(width);
    this.image = new ImageData(this.width, Math.max(1, rows));
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.mixed = new Float32Array(4 * this.width);
    this.lines = [];
  }

  // Adds a colour to the pixels of [from, to), of which tasks cover a share.
  mix(from, to, share, red, green, blue) {
    const { mixed } = this;
    const last = Math.min(this.width - 1, Math.floor(to));
    for (let x = Math.max(0, Math.floor(from)); x <= last; ++x) {
      const covered = (to < x + 1 ? to : x + 1) - (from > x ? from : x);
      const part = share * (covered > 0.25 ? covered : 0.25);
      const at = 4 * x;
      mixed[at] += part * red;
      mixed[at + 1] += part * green;
      mixed[at + 2] += part * blue;
      mixed[at + 3] += part;
    }
    this.used = true;
  }

  // Ends the line of a stretch of the canvas: the tasks that were mixed since the last one.
  endLine(top, height) {
    if (!this.used) return;
    const { mixed } = this;
    let pixel = this.width * this.lines.length;
    for (let at = 0; at < 4 * this.width; at += 4, ++pixel) {
      const part = mixed[at + 3];
      if (part === 0) continue;
      const scale = 1 / part;
      const alpha = part < 1 ? 255 * part : 255;
      // One word a pixel: alpha, blue, green, red from its highest byte on.
      this.pixels[pixel] = alpha << 24 | mixed[at + 2] * scale << 16 | mixed[at + 1] * scale << 8 |
        mixed[at] * scale;
    }
    this.lines.push({ top, height });
    this.mixed.fill(0);
    this.used = false;
  }

  paint(pen, left) {
    if (this.lines.length === 0) return;
    this.canvas.width = this.width;
    this.canvas.height = this.lines.length;
    this.pen.putImageData(this.image, 0, 0);
    pen.imageSmoothingEnabled = false;
    this.lines.forEach(({ top, height }, line) => {
      pen.drawImage(this.canvas, 0, line, this.width, 1, left, top, this.width, height);
    });
  }
}

class Painter {
  constructor(canvas, view, rows) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d", { alpha: false });
    this.view = view;
    this.rows = rows;
    this.strip = new Strip();
    this.signs = new Signs(this);
    this.readColours();
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue(`--${name}`).trim();
    this.colours = {};
    for (const name of ["page", "band", "text", "soft", "grid", "hatch", "held", "held-line", "alarm",
      "light"]) {
      this.colours[name] = this.colour(name);
    }
    this.fills = [];
    this.crowds = new Map();
    this.hatch = this.hatching();
  }

  // The colour of a task, whose class is that of its kind; paler for later chunks, as papers have it.
  fillOf(picture, task) {
    const shade = Math.max(1, Math.min(picture.tasks.chunk[task], 4)) - 1;
    const key = 4 * picture.tasks.kind[task] + shade;
    return this.fills[key] ??= this.mixedFill(picture.kindOf(task).name, [1, 0.62, 0.4, 0.25][shade]);
  }

  // Red, green and blue for strips, and text for bars.
  mixedFill(name, part) {
    const parts = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
    const page = parts(this.colours.page);
    const [red, green, blue] = parts(this.colour(name)).map(
      (value, at) => Math.round(part * value + (1 - part) * page[at]));
    return { red, green, blue, text: `rgb(${red},${green},${blue})`, line: this.colour(`${name}-line`) };
  }

  hatching() {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d");
    pen.strokeStyle = this.colours.hatch;
    for (const shift of [-6, 0, 6]) {
      pen.moveTo(shift, 6);
      pen.lineTo(shift + 6, 0);
    }
    pen.stroke();
    return this.pen.createPattern(tile, "repeat");
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.canvas;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.view.width = clientWidth;
    this.view.height = clientHeight;
  }

  paint(chosen) {
    const { pen, view } = this;
    pen.fillStyle = this.colours.page;
    pen.fillRect(0, 0, view.width, view.height);
    const seen = this.rows.between(view.scroll, view.scroll + view.height);
    this.bars = [];
    this.strip.begin(view.room, seen.reduce((sum, row) => sum + (row.lanes?.length ?? 0), 0));
    pen.save();
    pen.beginPath();
    pen.rect(view.left, 0, view.room, view.height);
    pen.clip();
    this.paintGrid();
    for (const row of seen) this.paintBack(row);
    for (const row of seen) this.gather(row);
    this.strip.paint(pen, view.left);
    this.paintBars();
    this.paintChosen(chosen);
    this.signs.paint();
    pen.restore();
    for (const row of seen) this.paintName(row);
    this.paintAxis();
  }

  y(row) {
    return row.top - this.view.scroll;
  }

  // --- what lies under the tasks ---

  paintBack(row) {
    const { pen, view } = this;
    if (row.type === "memory") this.paintMemory(row);
    if (row.type === "heading") {
      pen.fillStyle = this.colours.page;
      pen.fillRect(view.left, this.y(row) - 4, view.room, row.height + 2);
    }
    if (row.type !== "lane" && row.type !== "folded") return;
    pen.fillStyle = this.colours.band;
    const left = view.x(0);
    pen.fillRect(left, this.y(row), view.x(row.picture.makespan) - left, row.height);
    if (row.type === "folded" || row.first) this.paintBubbles(row);
  }

  paintBubbles(row) {
    const { bubbles } = row.picture;
    if (row.rank + 1 >= bubbles.at.length) return;
    this.pen.fillStyle = this.hatch;
    // Narrow ones are left to the ground of the row.
    const wide = bubbles.longerThan(row.rank, leastBar / this.view.perTime, mostBubbles);
    if (wide) for (const at of wide) this.paintBubble(row, at);
    else this.paintSeenBubbles(row);
  }

  paintBubble(row, at) {
    const { begin, end } = row.picture.bubbles;
    const x = this.view.x(begin[at]);
    const width = this.view.x(end[at]) - x;
    const seen = begin[at] < this.view.end && end[at] > this.view.begin && width >= leastBar;
    if (seen) this.pen.fillRect(x, this.y(row), width, row.height);
  }

  // Those of the view one after another, with one look for each pixel where they are narrow.
  paintSeenBubbles(row) {
    const { bubbles } = row.picture;
    const last = bubbles.at[row.rank + 1];
    let at = firstBeyond(bubbles.end, this.view.begin, bubbles.at[row.rank], last);
    while (at < last && bubbles.begin[at] < this.view.end) {
      this.paintBubble(row, at);
      const x = this.view.x(bubbles.begin[at]);
      at = this.view.x(bubbles.end[at]) - x >= leastBar ? at + 1
        : Math.max(at + 1, firstBeyond(bubbles.end, this.view.time(x + 1), at, last));
    }
  }

  paintMemory(row) {
    const { pen, view } = this;
    const { memory } = row.picture;
    const base = this.y(row) + row.height;
    const high = (held) => base - row.height * Math.max(0, held) / memory.most;
    let level = base;
    pen.beginPath();
    pen.moveTo(view.x(0), base);
    for (const { x, held } of this.courseOf(memory, row.rank)) {
      pen.lineTo(x, level);
      level = high(held);
      pen.lineTo(x, level);
    }
    pen.lineTo(view.x(row.picture.makespan), level);
    pen.lineTo(view.x(row.picture.makespan), base);
    pen.fillStyle = this.colours.held;
    pen.fill();
    pen.strokeStyle = this.colours["held-line"];
    pen.lineWidth = 1;
    pen.stroke();
  }

  // The steps of a rank's memory that are seen: of those within three pixels the highest.
  courseOf(memory, rank) {
    const { view } = this;
    const last = memory.at[rank + 1];
    const before = firstBeyond(memory.time, view.begin, memory.at[rank], last) - 1;
    const course = [];
    for (let at = Math.max(memory.at[rank], before); at < last; ++at) {
      const x = Math.max(view.left - 2, view.x(memory.time[at]));
      if (x > view.width) break;
      const held = memory.held[at];
      const latest = course[course.length - 1];
      if (latest && x - latest.x < leastBar) latest.held = Math.max(latest.held, held);
      else course.push({ x, held });
    }
    return course;
  }

  // --- tasks ---

  gather(row) {
    if (row.type !== "lane" && row.type !== "folded") return;
    for (const lane of row.lanes) {
      this.gatherLane(row, lane);
      this.strip.endLine(this.y(row), row.height);
    }
  }

  gatherLane(row, lane) {
    const { view } = this;
    const { tasks } = row.picture;
    const crowds = this.crowdsOf(row.picture);
    const last = tasks.laneAt[lane + 1];
    const narrow = leastBar / view.perTime;
    for (let at = tasks.firstAfter(lane, view.begin); at < last;) {
      if (tasks.begin[tasks.sorted[at]] > view.end) break;
      const level = crowds.levelAt(at, last, narrow);
      if (level < 0) this.gatherTask(row, tasks.sorted[at]);
      else this.mixCrowd(tasks, crowds.levels[level], at, crowding ** (level + 1));
      at += crowding ** (level + 1);
    }
  }

  crowdsOf(picture) {
    if (!this.crowds.has(picture)) {
      this.crowds.set(picture, new Crowds(picture.tasks, (task) => this.fillOf(picture, task)));
    }
    return this.crowds.get(picture);
  }

  gatherTask(row, task) {
    const { begin, end } = row.picture.tasks;
    const x = this.view.x(begin[task]);
    const width = (end[task] - begin[task]) * this.view.perTime;
    if (width >= leastBar) {
      this.bars.push({ row, task, x, width });
      return;
    }
    const { red, green, blue } = this.fillOf(row.picture, task);
    this.strip.mix(x - this.view.left, x - this.view.left + Math.max(0.5, width), 1, red, green, blue);
  }

  mixCrowd(tasks, { length, red, green, blue }, at, size) {
    const begin = tasks.begin[tasks.sorted[at]];
    const x = this.view.x(begin) - this.view.left;
    const time = Math.max(tasks.reach[at + size - 1] - begin, 1e-30);
    const group = at / size;
    const busy = length[group];
    this.strip.mix(x, x + Math.max(0.5, time * this.view.perTime), Math.min(1, busy / time),
      red[group] / busy, green[group] / busy, blue[group] / busy);
  }

  paintBars() {
    const isDetailed = this.bars.length <= mostDetailed;
    for (const bar of this.bars) this.paintBar(bar, isDetailed);
    if (!isDetailed) return;
    for (const bar of this.bars) this.paintTogether(bar);
    this.paintLabels();
  }

  // An edge around the members of a composite, painted with the first of them.
  paintTogether({ row, task, x, width }) {
    const { pen } = this;
    if (row.picture.tasks.members[task] < 2 || row.picture.tasks.member[task] > 0 || width <= 5) return;
    pen.lineWidth = 1.4;
    pen.strokeStyle = this.colours.text;
    pen.strokeRect(x, this.y(row), width, row.height);
  }

  // The members of a composite lie one above the other.
  placeOf({ row, task }) {
    const { tasks } = row.picture;
    const height = row.height / tasks.members[task];
    return { y: this.y(row) + height * tasks.member[task], height };
  }

  paintBar(bar, isDetailed) {
    const { pen } = this;
    const { y, height } = this.placeOf(bar);
    const fill = this.fillOf(bar.row.picture, bar.task);
    const x = Math.max(bar.x, this.view.left - 2);
    const width = Math.min(bar.x + bar.width, this.view.width + 2) - x;
    pen.fillStyle = fill.text;
    pen.fillRect(x, y, isDetailed ? width : width - 0.6, height);
    if (!isDetailed || bar.width <= 5) return;
    pen.lineWidth = 0.7;
    pen.strokeStyle = fill.line;
    pen.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    this.paintQuantizing(bar, y + height);
  }

  // A strip at the lower edge of a bar, from its beginning on.
  paintQuantizing(bar, bottom) {
    const takes = bar.row.picture.tasks.quantizing?.[bar.task] ?? 0;
    if (takes <= 0) return;
    const strip = 0.18 * this.placeOf(bar).height;
    const left = Math.max(bar.x, this.view.left - 2);
    const right = Math.min(bar.x + takes * this.view.perTime, this.view.width + 2);
    if (right <= left) return;
    this.pen.fillStyle = this.colours.text;
    this.pen.fillRect(left, bottom - strip, right - left, strip);
  }

  paintLabels() {
    this.pen.textAlign = "center";
    this.pen.textBaseline = "middle";
    this.pen.fillStyle = this.colours.text;
    this.print = 0;
    for (const bar of this.bars) this.paintLabel(bar);
  }

  paintLabel(bar) {
    const { y, height } = this.placeOf(bar);
    const left = Math.max(bar.x, this.view.left);
    const width = Math.min(bar.x + bar.width, this.view.width) - left;
    if (width < 9 || height < 8) return;
    const print = Math.round(Math.min(width < 24 ? 9 : 13, 0.78 * height));
    const label = bar.row.picture.barLabel(bar.task, Math.floor((width - 2) / (0.6 * print)));
    if (label === "") return;
    if (print !== this.print) this.pen.font = `${print}px Helvetica,Arial,sans-serif`;
    this.print = print;
    this.pen.fillText(label, left + width / 2, y + height / 2 + 0.5);
  }

  // --- what a pointer or a jump has chosen, and its chain ---

  paintChosen(chosen) {
    if (!chosen) return;
    const { picture, task } = chosen;
    const chain = chosen.chain;
    this.pen.strokeStyle = this.pen.fillStyle = this.colours.light;
    for (let at = 0; at < chain.length; ++at) {
      this.outline(chosen.at, picture, chain[at], at === 0 ? 2.5 : 1.5);
      if (at > 0) this.arrow(chosen.at, picture, chain[at], chain[at - 1]);
    }
    for (const waiter of chosen.waiters) this.arrow(chosen.at, picture, task, waiter, [4, 3]);
  }

  // The place of a task on the canvas; undefined if it is not seen.
  boxOf(at, picture, lane, begin, end) {
    const row = this.rows.rowOf(at, lane);
    if (!row) return undefined;
    const x = this.view.x(begin);
    return { x, y: this.y(row), width: Math.max(1, this.view.x(end) - x), height: row.height };
  }

  boxOfTask(at, picture, task) {
    const { lane, begin, end } = picture.tasks;
    return this.boxOf(at, picture, lane[task], begin[task], end[task]);
  }

  outline(at, picture, task, width) {
    const box = this.boxOfTask(at, picture, task);
    if (!box || !this.sees(box)) return;
    this.pen.lineWidth = width;
    this.pen.strokeRect(box.x, box.y - 1, box.width, box.height + 2);
  }

  sees(box) {
    const { view } = this;
    return box.x + box.width >= view.left && box.x <= view.width && box.y + box.height >= 0 &&
      box.y <= view.height;
  }

  arrow(at, picture, from, to, dash = []) {
    const a = this.boxOfTask(at, picture, from);
    const b = this.boxOfTask(at, picture, to);
    if (!a || !b || a.y === b.y || (!this.sees(a) && !this.sees(b))) return;
    const down = b.y > a.y;
    this.line(a.x + a.width, a.y + (down ? a.height : 0), b.x, b.y + (down ? 0 : b.height), dash);
  }

  line(x0, y0, x1, y1, dash) {
    const { pen } = this;
    pen.lineWidth = 1.4;
    pen.setLineDash(dash);
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
    pen.setLineDash([]);
    this.head(x1, y1, Math.atan2(y1 - y0, x1 - x0));
  }

  head(x, y, along) {
    const { pen } = this;
    pen.beginPath();
    pen.moveTo(x, y);
    for (const side of [-0.4, 0.4]) pen.lineTo(x - 8 * Math.cos(along + side), y - 8 * Math.sin(along + side));
    pen.fill();
  }

  // --- names and time ---

  paintName(row) {
    const { pen, view } = this;
    const y = this.y(row);
    pen.textBaseline = "middle";
    if (row.type === "heading") return this.paintHeading(row, y);
    pen.textAlign = "left";
    pen.fillStyle = this.colours.text;
    if (row.first || row.type === "folded") {
      pen.font = `bold ${row.type === "folded" ? 10 : 11}px Helvetica,Arial,sans-serif`;
      pen.fillText(`${row.type === "folded" ? "▸" : "▾"} rank ${row.rank}`, 6, y + row.height / 2);
    }
    pen.textAlign = "right";
    pen.fillStyle = this.colours.soft;
    pen.font = "10px Helvetica,Arial,sans-serif";
    pen.fillText(this.nameOf(row), view.left - 5, y + row.height / 2);
  }

  nameOf(row) {
    if (row.type === "memory") return `memory, peak ${Number(row.picture.memory.peakOf(row.rank).toPrecision(4))}`;
    if (row.type === "folded") return "";
    return row.lanes.length === 0 ? "idle" : row.picture.lanes[row.lanes[0]][1];
  }

  paintHeading(row, y) {
    const { pen } = this;
    const { picture } = row;
    pen.textAlign = "left";
    pen.fillStyle = this.colours.text;
    pen.font = "bold 13px Helvetica,Arial,sans-serif";
    pen.fillText(picture.title, 6, y + 12);
    pen.font = "12px Helvetica,Arial,sans-serif";
    pen.fillStyle = picture.accepted ? this.colours.soft : this.colours.alarm;
    const makespan = picture.origin === "listed" ? "" : `, makespan ${picture.time(picture.makespan)}`;
    pen.fillText(picture.verdict + makespan, 6, y + 29);
  }

  // A step of 1, 2 or 5 times a power of ten that leaves room for figures.
  tick() {
    const least = 80 / this.view.perTime;
    const power = 10 ** Math.floor(Math.log10(least));
    return power * ([1, 2, 5].find((times) => times * power >= least) ?? 10);
  }

  * ticks() {
    const step = this.tick();
    for (let count = Math.ceil(this.view.begin / step); count * step <= this.view.end; ++count) {
      if (count >= 0) yield count * step;
    }
  }

  paintGrid() {
    const { pen, view } = this;
    pen.strokeStyle = this.colours.grid;
    pen.lineWidth = 1;
    pen.beginPath();
    for (const time of this.ticks()) {
      const x = Math.round(view.x(time)) + 0.5;
      pen.moveTo(x, 0);
      pen.lineTo(x, view.height);
    }
    pen.stroke();
  }

  paintAxis() {
    const { pen, view } = this;
    const y = view.height - 20;
    pen.fillStyle = this.colours.page;
    pen.fillRect(0, y, view.width, 20);
    pen.fillStyle = this.colours.soft;
    pen.font = "10px Helvetica,Arial,sans-serif";
    pen.textAlign = "right";
    pen.fillText(this.rows.pictures[0].unit, view.left - 14, y + 10);
    pen.textAlign = "center";
    for (const time of this.ticks()) pen.fillText(String(Number(time.toPrecision(8))), view.x(time), y + 10);
  }
}
