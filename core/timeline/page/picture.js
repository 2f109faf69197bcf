// One schedule as the page has it: tasks, lanes, memory, bubbles, findings and the order's text, with
// the words for each.

class Picture {
  constructor(data, kinds) {
    Object.assign(this, data);
    this.kinds = kinds;
    this.tasks = new Tasks(data.tasks, data.lanes.length);
    this.path = column(data.path);
    this.memory = new Memory(data.memory);
    this.bubbles = new Bubbles(data.bubbles);
    this.text = new OrderText(data.order);
    this.lanesOf = Array.from({ length: this.ranks }, () => []);
    for (let lane = 0; lane < this.lanes.length; ++lane) this.addLane(lane);
  }

  addLane(lane) {
    const used = this.tasks.laneAt[lane] < this.tasks.laneAt[lane + 1] ||
      this.alarms.some((alarm) => alarm.places.some((spot) => spot[0] === lane));
    if (used) this.lanesOf[this.lanes[lane][0]].push(lane);
  }

  // The room that words of findings want between ranks.
  roomForWords() {
    if (this.alarms.some((alarm) => alarm.arrows.length > 0)) return 45;
    return this.alarms.some((alarm) => alarm.places.length > 0) ? 16 : 0;
  }

  rankOf(task) {
    return this.lanes[this.tasks.lane[task]][0];
  }

  kindOf(task) {
    return this.kinds[this.tasks.kind[task]];
  }

  labelOf(task) {
    return this.labels[this.tasks.label[task]];
  }

  placedLabel(task) {
    return `${this.labelOf(task)} of rank ${this.rankOf(task)}`;
  }

  // The letter of the kind, chunk and microbatch; shorter for narrow bars.
  barLabel(task, letters) {
    const microbatch = this.microbatchOf(task);
    const { letter } = this.kindOf(task);
    const chunk = this.oneChunk || !this.tasks.chunk[task] ? "" : `${this.tasks.chunk[task]}.`;
    const forms = [letter + chunk + microbatch, letter + microbatch, microbatch];
    return forms.find((form) => form.length <= letters) ?? "";
  }

  // Empty if it has none; columns keep one more than the number.
  microbatchOf(task) {
    const microbatch = this.tasks.microbatch[task];
    return microbatch === 0 ? "" : String(microbatch - 1);
  }

  time(value) {
    const text = String(Number(value.toPrecision(6)));
    return this.unit === "microseconds" ? `${text} us` : text;
  }

  // The task that fixed when a task began; none if nothing did.
  causeOf(task) {
    const bound = this.tasks.bound[task];
    return bound === undefined || bound === none ? none : bound;
  }

  // The causes of a task, from the last one back to the one that began at the start.
  chainOf(task) {
    const chain = [task];
    for (let at = this.causeOf(task); at !== none && chain.length <= this.tasks.count;) {
      chain.push(at);
      at = this.causeOf(at);
    }
    return chain;
  }

  find(rank, chunk, microbatch, kind) {
    const { tasks } = this;
    for (let task = 0; task < tasks.count; ++task) {
      if (this.rankOf(task) === rank && tasks.chunk[task] === chunk &&
          tasks.microbatch[task] === microbatch + 1 && this.kindOf(task).names.includes(kind)) {
        return task;
      }
    }
    return none;
  }

  // The tasks whose label begins with the words; "rank 3 F1" looks at one rank.
  search(words) {
    const [, rank, rest] = words.trim().match(/^(?:r(?:ank)?\s*(\d+)\s*)?(.*)$/i);
    const wanted = rest.toLowerCase();
    const fits = this.labels.map((label) => label.toLowerCase().startsWith(wanted));
    const found = [];
    for (let task = 0; task < this.tasks.count; ++task) {
      if (!fits[this.tasks.label[task]]) continue;
      if (rank === undefined || this.rankOf(task) === Number(rank)) found.push(task);
    }
    return found;
  }

  // The task of an entry of a rank's order, computations first.
  taskOfEntry(rank, entry) {
    let found = none;
    for (let task = 0; task < this.tasks.count; ++task) {
      if (this.tasks.entry[task] !== entry || this.rankOf(task) !== rank) continue;
      if (this.kindOf(task).computes) return task;
      if (found === none) found = task;
    }
    return found;
  }
}

class Memory {
  constructor(data) {
    this.at = beginnings(column(data.counts));
    this.time = column(data.time);
    this.held = column(data.held);
    this.most = this.held.reduce((most, held) => Math.max(most, held), 0);
  }

  has(rank) {
    return rank + 1 < this.at.length && this.at[rank] < this.at[rank + 1] && this.most > 0;
  }

  peakOf(rank) {
    const own = this.held.subarray(this.at[rank], this.at[rank + 1]);
    return own.reduce((most, held) => Math.max(most, held), 0);
  }

  // The position of the first moment of a rank's highest memory.
  peakAt(rank) {
    return this.time[this.at[rank] + this.held.subarray(this.at[rank], this.at[rank + 1])
      .indexOf(this.peakOf(rank))];
  }
}

class Bubbles {
  constructor(data) {
    for (const name of ["begin", "cause", "next", "on", "exposed"]) this[name] = column(data[name]);
    this.end = ends(this.begin, column(data.length));
    this.causes = data.causes;
    this.at = beginnings(column(data.counts));
    this.count = this.begin.length;
  }

  rankOf(bubble) {
    return firstBeyond(this.at, bubble, 0, this.at.length) - 1;
  }

  // For each cause its name, the sum of its times and its longest bubble; the largest sum first.
  byCause() {
    const sums = this.causes.map((cause) => ({ cause, sum: 0, longest: none }));
    for (let at = 0; at < this.count; ++at) {
      const own = sums[this.cause[at]];
      own.sum += this.lengthOf(at);
      if (own.longest === none || this.lengthOf(at) > this.lengthOf(own.longest)) own.longest = at;
    }
    return sums.filter((each) => each.longest !== none).sort((a, b) => b.sum - a.sum);
  }

  lengthOf(bubble) {
    return this.end[bubble] - this.begin[bubble];
  }

  // The bubbles of a rank that are longer than a time; undefined if they are more than `most`. The
  // table of a rank's bubbles from the longest on is made when a frame first asks.
  longerThan(rank, time, most) {
    this.byLength ??= [];
    const sorted = this.byLength[rank] ??= Uint32Array.from(
      { length: this.at[rank + 1] - this.at[rank] }, (_, at) => this.at[rank] + at)
      .sort((a, b) => this.lengthOf(b) - this.lengthOf(a));
    if (sorted.length > most && this.lengthOf(sorted[most]) > time) return undefined;
    let count = 0;
    while (count < sorted.length && this.lengthOf(sorted[count]) > time) ++count;
    return sorted.subarray(0, count);
  }

  // The bubble of a rank at a time; none if the rank computes then.
  find(rank, time) {
    if (rank + 1 >= this.at.length) return none;
    const at = firstBeyond(this.end, time, this.at[rank], this.at[rank + 1]);
    return at < this.at[rank + 1] && this.begin[at] <= time ? at : none;
  }
}

// The text of an order and where in it each entry stands, rank after rank, in bytes.
class OrderText {
  constructor(data) {
    this.text = data.text;
    this.length = column(data.length);
    this.begin = this.beginsBehind(column(data.gaps));
    this.at = beginnings(column(data.counts));
  }

  // Positions from the bytes between each entry and the one before.
  beginsBehind(gaps) {
    let end = 0;
    return Uint32Array.from(gaps, (gap, at) => {
      const begin = end + signed(gap);
      end = begin + this.length[at];
      return begin;
    });
  }

  // [begin, end) of an entry in the text; undefined if it has no place there.
  spanOf(rank, entry) {
    const at = this.at[rank] + entry;
    if (!(at < this.at[rank + 1])) return undefined;
    const begin = this.begin[at];
    return [begin, begin + this.length[at]].map((byte) => this.charactersUntil(byte));
  }

  charactersUntil(byte) {
    this.bytes ??= new TextEncoder().encode(this.text);
    return new TextDecoder().decode(this.bytes.subarray(0, byte)).length;
  }

  // [rank, entry] of the entry at a position of the text; undefined if there is none.
  entryAt(position) {
    const byte = new TextEncoder().encode(this.text.slice(0, position)).length;
    const fits = (begin, at) => begin <= byte && byte < begin + this.length[at];
    const at = this.begin.findIndex(fits);
    if (at < 0) return undefined;
    const rank = firstBeyond(this.at, at, 0, this.at.length) - 1;
    return [rank, at - this.at[rank]];
  }
}
