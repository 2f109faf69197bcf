// The page: puts the parts together, and turns what a reader does into a view.

class Page {
  constructor(data) {
    this.pictures = data.pictures.map((picture) => new Picture(picture, data.kinds));
    this.canvas = document.querySelector("canvas");
    this.rows = new Rows(this.pictures);
    this.view = new View(Math.max(...this.pictures.map((picture) => picture.makespan)), 128);
    this.painter = new Painter(this.canvas, this.view, this.rows);
    this.hint = new Hint();
    this.panels = new Panels(this.pictures, this);
    this.times = [];
    this.resize();
    this.paint();
  }

  resize() {
    this.painter.resize();
    this.rows.fit(this.view.height);
  }

  get tasks() {
    return this.pictures.reduce((sum, picture) => sum + picture.tasks.count, 0);
  }

  // --- frames ---

  // Asks for a frame. What happens before it is drawn is in it.
  change() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.waiting = false;
    const begin = performance.now();
    this.view.keepScrollInside(this.rows.height);
    this.painter.paint(this.chosen);
    this.times.push(performance.now() - begin);
    if (this.times.length > 1000) this.times.shift();
  }

  // --- going somewhere ---

  choose(at, task, go) {
    const picture = this.pictures[at];
    this.chosen = { at, picture, task, chain: picture.chainOf(task), waiters: picture.tasks.waiters(task) };
    if (go) this.showSpot(at, picture.tasks.lane[task], picture.tasks.begin[task], picture.tasks.end[task]);
    this.panels.showEntry(at, task);
    this.change();
  }

  showSpot(at, lane, begin, end) {
    this.showRank(at, this.pictures[at].lanes[lane][0], begin, end);
  }

  showRank(at, rank, begin, end) {
    if (this.rows.folded[at][rank]) this.rows.fold(at, rank, false);
    const row = this.rows.rows.find((each) => each.at === at && each.rank === rank);
    this.view.show(begin, end);
    this.view.scroll = row.top - this.view.height / 3;
    this.change();
  }

  goto(rank, chunk, microbatch, kind) {
    for (let at = 0; at < this.pictures.length; ++at) {
      const task = this.pictures[at].find(rank, chunk, microbatch, kind);
      if (task === none) continue;
      this.choose(at, task, true);
      return true;
    }
    return false;
  }

  zoom(factor, x) {
    this.view.zoom(factor, x);
    this.change();
  }

  pan(pixels, rows) {
    this.view.pan(pixels, rows);
    this.change();
  }

  showAll() {
    this.view.showAll();
    this.view.scroll = 0;
    this.change();
  }

  foldAll() {
    this.allFolded = !this.rows.folded.every((ranks) => ranks.every(Boolean));
    this.rows.foldAll(this.allFolded);
    this.change();
  }

  // --- search ---

  // Goes to the next task that the words name, from the last one found on. Returns how many there
  // are.
  search(words) {
    if (words !== this.words) {
      this.words = words;
      this.at = -1;
      this.found = words.trim() === "" ? [] : this.pictures.flatMap(
        (picture, at) => picture.search(words).map((task) => [at, task]));
    }
    if (this.found.length === 0) return "no task begins so";
    this.at = (this.at + 1) % this.found.length;
    this.choose(...this.found[this.at], true);
    return `${this.at + 1} of ${this.found.length}`;
  }

  // --- under the pointer ---

  // [picture's position, task] at a point of the canvas; undefined if there is none.
  taskAt(x, y) {
    const row = x >= this.view.left ? this.rows.at(y + this.view.scroll) : undefined;
    for (const lane of row?.lanes ?? []) {
      const task = this.taskOfLane(row, lane, x, y + this.view.scroll);
      if (task !== none) return [row.at, task];
    }
    return undefined;
  }

  taskOfLane(row, lane, x, y) {
    const { tasks } = row.picture;
    const slack = 1 / this.view.perTime;
    const time = this.view.time(x);
    for (let at = tasks.firstAfter(lane, time - slack); at < tasks.laneAt[lane + 1]; ++at) {
      const task = tasks.sorted[at];
      if (tasks.begin[task] > time + slack) break;
      const member = Math.floor((y - row.top) / row.height * tasks.members[task]);
      if (tasks.members[task] > 1 && member !== tasks.member[task]) continue;
      if (tasks.end[task] >= time - slack) return task;
    }
    return none;
  }

  hover(x, y, clientX, clientY) {
    const found = this.taskAt(x, y);
    if (found) {
      const [at, task] = found;
      if (this.chosen?.at !== at || this.chosen?.task !== task) this.choose(at, task, false);
      return this.hint.show(this.hint.wordsOfTask(this.pictures[at], task), clientX, clientY);
    }
    const row = x >= this.view.left ? this.rows.at(y + this.view.scroll) : undefined;
    const bubble = row?.lanes ? row.picture.bubbles.find(row.rank, this.view.time(x)) : none;
    if (bubble === none) return this.leave();
    return this.hint.show(this.hint.wordsOfBubble(row.picture, bubble), clientX, clientY);
  }

  leave() {
    this.hint.hide();
    if (!this.chosen) return;
    this.chosen = undefined;
    this.change();
  }

  // A click on a rank's name folds or unfolds it, one on a bar shows its entry.
  click(x, y) {
    const row = this.rows.at(y + this.view.scroll);
    if (x < this.view.left && row?.rank !== undefined) {
      this.rows.fold(row.at, row.rank, !this.rows.folded[row.at][row.rank]);
      return this.change();
    }
    const found = this.taskAt(x, y);
    if (found) this.choose(...found, false);
    return undefined;
  }
}
