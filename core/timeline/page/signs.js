// Findings in red: frames around their tasks, arrows between them, and words beside those that lie on
// no arrow, row or other words. Where more signs are seen than can be told apart, or words have no
// room, they are left to the list of findings and to a closer view.

const mostWorded = 32;
const wordHeight = 10;
const tries = [0, 12, 24].flatMap((away) => [[0, -1], [0, 1], [1, 0], [-1, 0], [1, -1], [-1, -1], [1, 1], [-1, 1]]
  .flatMap(([right, down]) => [0.5, 0.35, 0.65, 0.2, 0.8].map((part) => ({ part, right, down, away }))));

function meet(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

class Signs {
  constructor(painter) {
    this.painter = painter;
    this.pen = painter.pen;
  }

  paint() {
    const { pen, painter } = this;
    pen.strokeStyle = pen.fillStyle = painter.colours.alarm;
    pen.font = `bold ${wordHeight}px Helvetica,Arial,sans-serif`;
    pen.textAlign = "left";
    this.signs = [];
    painter.rows.pictures.forEach((picture, at) => {
      for (const alarm of picture.alarms) this.paintAlarm(at, picture, alarm);
    });
    if (this.signs.length <= mostWorded) this.paintWords();
  }

  paintAlarm(at, picture, alarm) {
    const { pen, painter } = this;
    for (const spot of alarm.places) {
      const box = painter.boxOf(at, picture, ...spot);
      if (!box || !painter.sees(box)) continue;
      pen.lineWidth = 2;
      pen.strokeRect(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
      const edge = { x0: box.x, y0: box.y - 1, x: box.x + box.width / 2, y: box.y - 1, x1: box.x + box.width, y1: box.y - 1 };
      if (alarm.arrows.length === 0) this.signs.push({ curve: edge, words: alarm.rule, isArrow: false });
    }
    for (const arrow of alarm.arrows) this.paintArrow(at, picture, alarm, arrow);
  }

  paintArrow(at, picture, alarm, [from, to, words]) {
    const { painter } = this;
    const a = painter.boxOf(at, picture, ...from);
    const b = painter.boxOf(at, picture, ...to);
    if (!a || !b || (!painter.sees(a) && !painter.sees(b))) return;
    const curve = this.curveBetween(a, b, a.y === b.y && this.goesBelow(at, from, to));
    this.signs.push({ curve, words: `${alarm.rule} ${words}`, isArrow: true });
    this.stroke(curve);
  }

  // Whether an arrow between tasks of one row goes below the bars: where no rank is on that side, else
  // to the left.
  goesBelow(at, from, to) {
    const { rows } = this.painter;
    const isLane = (row) => row.at === at && (row.type === "lane" || row.type === "folded");
    const own = rows.rowOf(at, from[0]);
    const first = own === rows.rows.find(isLane);
    const last = own === rows.rows.findLast(isLane);
    return first === last ? from[1] > to[1] : last;
  }

  // Between rows it bends to its own left, so that two arrows that go to and fro lie apart.
  curveBetween(a, b, below) {
    const lower = (box) => box.y + box.height;
    const [x0, x1] = [a.x + a.width / 2, b.x + b.width / 2];
    const [y0, y1] = a.y === b.y ? [below ? lower(a) : a.y, below ? lower(b) : b.y]
      : a.y < b.y ? [lower(a), b.y] : [a.y, lower(b)];
    const along = Math.max(1, Math.hypot(x1 - x0, y1 - y0));
    let out = Math.min(40, Math.max(12, 0.22 * along)) / along;
    if (a.y === b.y && below !== x1 < x0) out = -out;
    return { x0, y0, x: (x0 + x1) / 2 + out * (y1 - y0), y: (y0 + y1) / 2 - out * (x1 - x0), x1, y1 };
  }

  stroke({ x0, y0, x, y, x1, y1 }) {
    const { pen } = this;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.quadraticCurveTo(x, y, x1, y1);
    pen.stroke();
    this.painter.head(x1, y1, Math.atan2(y1 - y, x1 - x));
  }

  // --- words ---

  paintWords() {
    this.taken = this.signs.filter((sign) => sign.isArrow).flatMap(({ curve }) => this.boxesAlong(curve));
    const said = new Set();
    for (const { curve, words } of this.signs) {
      const ends = [`${words} from ${curve.x0} ${curve.y0}`, `${words} to ${curve.x1} ${curve.y1}`];
      const isNew = ends.every((end) => !said.has(end));
      for (const end of ends) said.add(end);
      const box = isNew ? this.placeBeside(curve, this.pen.measureText(words).width) : undefined;
      if (!box) continue;
      this.taken.push(box);
      this.write(words, box);
    }
  }

  pointOn({ x0, y0, x, y, x1, y1 }, part) {
    const [a, b, c] = [(1 - part) ** 2, 2 * part * (1 - part), part ** 2];
    return { x: a * x0 + b * x + c * x1, y: a * y0 + b * y + c * y1 };
  }

  boxesAlong(curve) {
    const steps = 16;
    const points = Array.from({ length: steps + 1 }, (_, step) => this.pointOn(curve, step / steps));
    return points.slice(1).map((point, step) => ({
      left: Math.min(point.x, points[step].x) - 2, right: Math.max(point.x, points[step].x) + 2,
      top: Math.min(point.y, points[step].y) - 2, bottom: Math.max(point.y, points[step].y) + 2,
    }));
  }

  placeBeside(curve, width) {
    for (const { part, right, down, away } of tries) {
      const point = this.pointOn(curve, part);
      const room = 5 + away;
      const left = point.x + right * (width / 2 + room) - width / 2;
      const top = point.y + down * (wordHeight / 2 + room) - wordHeight / 2;
      const box = { left, top, right: left + width, bottom: top + wordHeight };
      if (this.isOnPage(box) && !this.taken.some((other) => meet(box, other))) return box;
    }
    return undefined;
  }

  isOnPage(box) {
    const { view, rows } = this.painter;
    if (box.left < view.left || box.right > view.width || box.bottom > view.height - 20) return false;
    return rows.between(box.top + view.scroll, box.bottom + view.scroll).every((row) => row.type === "memory" ||
      row.top + row.height < box.top + view.scroll || row.top > box.bottom + view.scroll);
  }

  // With a rim of the page's colour.
  write(words, box) {
    const { pen, painter } = this;
    const middle = (box.top + box.bottom) / 2;
    pen.textBaseline = "middle";
    pen.strokeStyle = painter.colours.page;
    pen.lineWidth = 4;
    pen.strokeText(words, box.left, middle);
    pen.strokeStyle = painter.colours.alarm;
    pen.fillText(words, box.left, middle);
  }
}
