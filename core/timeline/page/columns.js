// A picture's tasks as columns: an array of numbers for each fact, which 200,000 tasks need in order
// to load at once. A column comes as "u2:" and its bytes in base64, the head saying how wide a number
// is, or as [count, value] where all are equal.

const arrays = {
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
  f4: Float32Array,
  f8: Float64Array,
};
const none = 0xffffffff;

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; ++at) bytes[at] = text.charCodeAt(at);
  return bytes;
}

function column(text) {
  if (typeof text !== "string") return new Uint32Array(text[0]).fill(text[1]);
  return new arrays[text.slice(0, 2)](bytesOf(text.slice(3)).buffer);
}

// Where each of the groups begins whose sizes are given, and behind the last one its end.
function beginnings(sizes) {
  const begins = new Uint32Array(sizes.length + 1);
  for (let at = 0; at < sizes.length; ++at) begins[at + 1] = begins[at] + sizes[at];
  return begins;
}

// Numbers with a sign come doubled, and those below 0 one less: 0, -1, 1, -2.
function signed(number) {
  return number % 2 ? -(number + 1) / 2 : number / 2;
}

// The tasks that lie so far from each owner; a distance of 0 is none.
function tasksAt(distances, owners) {
  return Uint32Array.from(distances, (far, at) => (far === 0 ? none : owners(at) + signed(far)));
}

function ends(begins, lengths) {
  return begins.map((begin, at) => begin + lengths[at]);
}

// The first position in [from, to) whose value is beyond `value`; `to` if none is.
function firstBeyond(values, value, from, to) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] > value) to = middle;
    else from = middle + 1;
  }
  return from;
}

class Tasks {
  constructor(data, lanes) {
    this.count = data.count;
    for (const name of ["begin", "lane", "kind", "chunk", "microbatch", "entry", "member", "members",
      "label"]) {
      this[name] = column(data[name]);
    }
    this.end = ends(this.begin, column(data.length));
    // The time that quantization takes of each; undefined where no task tells it.
    this.quantizing = data.quantizing && column(data.quantizing);
    this.bound = tasksAt(column(data.bound), (at) => at);
    this.waitsAt = beginnings(column(data.waitCounts));
    this.waitsFrom = tasksAt(column(data.waits), this.ownersOfWaits());
    this.sortIntoLanes(lanes);
  }

  // The task that each of the waits belongs to, for positions that only grow.
  ownersOfWaits() {
    let task = 0;
    return (at) => {
      while (this.waitsAt[task + 1] <= at) ++task;
      return task;
    };
  }

  // Fills `sorted`, the tasks of lane after lane by their begin, and `reach`, the latest end up to
  // each of them, which grows along a lane even where transfers overlap.
  sortIntoLanes(lanes) {
    const sizes = new Uint32Array(lanes);
    for (let task = 0; task < this.count; ++task) ++sizes[this.lane[task]];
    this.laneAt = beginnings(sizes);
    const next = this.laneAt.slice();
    this.sorted = new Uint32Array(this.count);
    for (let task = 0; task < this.count; ++task) this.sorted[next[this.lane[task]]++] = task;
    this.place = new Uint32Array(this.count);
    this.reach = new Float64Array(this.count);
    for (let lane = 0; lane < lanes; ++lane) this.finishLane(this.laneAt[lane], this.laneAt[lane + 1]);
  }

  finishLane(from, to) {
    const own = this.sorted.subarray(from, to);
    const isSorted = own.every((task, at) => at === 0 || this.begin[own[at - 1]] <= this.begin[task]);
    if (!isSorted) own.sort((a, b) => this.begin[a] - this.begin[b] || a - b);
    let reach = -Infinity;
    for (let at = from; at < to; ++at) {
      reach = Math.max(reach, this.end[this.sorted[at]]);
      this.reach[at] = reach;
      this.place[this.sorted[at]] = at;
    }
  }

  // The place in `sorted` of the first task of a lane that ends after a time.
  firstAfter(lane, time) {
    return firstBeyond(this.reach, time, this.laneAt[lane], this.laneAt[lane + 1]);
  }

  // The task before it on its lane; none if it is the first.
  before(task) {
    const place = this.place[task];
    return place > this.laneAt[this.lane[task]] ? this.sorted[place - 1] : none;
  }

  behind(task) {
    const place = this.place[task] + 1;
    return place < this.laneAt[this.lane[task] + 1] ? this.sorted[place] : none;
  }

  // The tasks of other lanes that it waits for.
  waitsFor(task) {
    return this.waitsFrom.subarray(this.waitsAt[task], this.waitsAt[task + 1]);
  }

  // The tasks of other lanes that wait for it. The table is made when the first pointer asks.
  waiters(task) {
    if (!this.waitersAt) this.turnWaits();
    return this.waitersOf.subarray(this.waitersAt[task], this.waitersAt[task + 1]);
  }

  turnWaits() {
    const sizes = new Uint32Array(this.count);
    for (const from of this.waitsFrom) ++sizes[from];
    this.waitersAt = beginnings(sizes);
    const next = this.waitersAt.slice();
    this.waitersOf = new Uint32Array(this.waitsFrom.length);
    for (let task = 0; task < this.count; ++task) {
      for (const from of this.waitsFor(task)) this.waitersOf[next[from]++] = task;
    }
  }
}
