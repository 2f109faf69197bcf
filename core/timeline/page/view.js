// The stretch of time that is seen, and how far the rows are scrolled.

class View {
  constructor(makespan, names) {
    this.makespan = makespan > 0 ? makespan : 1;
    this.left = names;
    this.width = 800;
    this.height = 400;
    this.scroll = 0;
    this.showAll();
  }

  showAll() {
    const room = this.makespan * 0.01;
    this.begin = -room;
    this.length = this.makespan + 2 * room;
  }

  get end() {
    return this.begin + this.length;
  }

  // The pixels of the time axis.
  get room() {
    return Math.max(1, this.width - this.left);
  }

  get perTime() {
    return this.room / this.length;
  }

  x(time) {
    return this.left + (time - this.begin) * this.perTime;
  }

  time(x) {
    return this.begin + (x - this.left) / this.perTime;
  }

  // Makes the view `factor` times closer and leaves the time under x where it is.
  zoom(factor, x = this.left + this.room / 2) {
    const fixed = this.time(x);
    const most = this.makespan * 1.2;
    const length = Math.min(most, Math.max(this.makespan * 1e-9, this.length / factor));
    this.begin = fixed - (fixed - this.begin) * length / this.length;
    this.length = length;
    this.keepInside();
  }

  pan(pixels, rows) {
    this.begin += pixels / this.perTime;
    this.scroll += rows;
    this.keepInside();
  }

  // Half of the view stays on the timeline, so that nobody gets lost.
  keepInside() {
    const half = this.length / 2;
    this.begin = Math.min(this.makespan - half, Math.max(-half, this.begin));
  }

  keepScrollInside(total) {
    this.scroll = Math.max(0, Math.min(this.scroll, total - this.height + 30));
  }

  // Shows a stretch of time with some room around it.
  show(begin, end) {
    const length = Math.max((end - begin) * 12, this.makespan * 1e-6);
    this.length = Math.min(length, this.makespan * 1.02);
    this.begin = (begin + end) / 2 - this.length / 2;
    this.keepInside();
  }
}
