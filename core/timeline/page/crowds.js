// Tasks that stand side by side in a lane, in groups of 4, 16, 64 and so on: how much of its time a
// group is busy, and its colour. A group that is narrower than a few pixels is painted as one.

const crowding = 4;

class Crowds {
  // `fillOf(task)` has the red, green and blue of a task.
  constructor(tasks, fillOf) {
    this.levels = [];
    this.tasks = tasks;
    let below = this.singles(fillOf);
    for (let size = crowding; size <= tasks.count; size *= crowding) {
      below = this.grouped(below);
      this.levels.push(below);
    }
  }

  // Of each task its length, and its colours times its length. A task without a length counts little.
  singles(fillOf) {
    const { sorted, begin, end } = this.tasks;
    const sums = this.empty(sorted.length);
    sorted.forEach((task, at) => {
      const { red, green, blue } = fillOf(task);
      const length = Math.max(end[task] - begin[task], 1e-30);
      sums.length[at] = length;
      sums.red[at] = red * length;
      sums.green[at] = green * length;
      sums.blue[at] = blue * length;
    });
    return sums;
  }

  empty(count) {
    return { length: new Float64Array(count), red: new Float64Array(count), green: new Float64Array(count),
      blue: new Float64Array(count) };
  }

  grouped(below) {
    const groups = Math.ceil(below.length.length / crowding);
    const sums = this.empty(groups);
    for (const name of ["length", "red", "green", "blue"]) {
      below[name].forEach((value, at) => { sums[name][Math.floor(at / crowding)] += value; });
    }
    return sums;
  }

  // The highest level at which the group that begins at a place of `sorted` ends before `last` and is
  // shorter than `most`; -1 if there is none.
  levelAt(at, last, most) {
    const begin = this.tasks.begin[this.tasks.sorted[at]];
    let level = -1;
    for (let size = crowding; at % size === 0 && at + size <= last; size *= crowding) {
      if (this.tasks.reach[at + size - 1] - begin >= most || level + 1 >= this.levels.length) break;
      ++level;
    }
    return level;
  }
}
