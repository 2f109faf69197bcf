// What stands beside the canvas: the findings, which the page holds as text and which jump to their
// places, sums of bubbles and memory, and the order's text.

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function jumpButton(text, jump) {
  const button = element("button", text, { type: "button" });
  button.addEventListener("click", jump);
  return button;
}

class Panels {
  constructor(pictures, page) {
    this.pictures = pictures;
    this.page = page;
    this.texts = [];
    pictures.forEach((picture, at) => this.fill(picture, at));
  }

  fill(picture, at) {
    const part = (name) => document.querySelector(`section[data-picture="${at}"] .${name}`);
    part("findings").querySelectorAll("button").forEach((button, index) => {
      button.addEventListener("click", () => this.jumpToAlarm(at, picture.alarms[index]));
    });
    this.fillBubbles(part("bubbles"), picture, at);
    this.fillMemory(part("memory"), picture, at);
    this.fillOrder(part("order"), picture, at);
  }

  jumpToAlarm(at, alarm) {
    const spots = [...alarm.places, ...alarm.arrows.flatMap(([from, to]) => [from, to])];
    if (spots.length === 0) return;
    const begin = Math.min(...spots.map((spot) => spot[1]));
    const end = Math.max(...spots.map((spot) => spot[2]));
    this.page.showSpot(at, spots[0][0], begin, end);
  }

  fillBubbles(list, picture, at) {
    const { bubbles } = picture;
    for (const { cause, sum, longest } of bubbles.byCause()) {
      const share = (100 * sum / (picture.makespan * picture.ranks)).toFixed(2);
      const rank = bubbles.rankOf(longest);
      const item = element("li", `${cause}: ${picture.time(sum)}, ${share} % of all ranks; `);
      item.append(jumpButton(`longest on rank ${rank}: ${picture.time(bubbles.lengthOf(longest))}`,
        () => this.page.showRank(at, rank, bubbles.begin[longest], bubbles.end[longest])));
      list.append(item);
    }
    this.hideEmpty(list);
  }

  fillMemory(list, picture, at) {
    for (let rank = 0; rank < Math.min(picture.ranks, 256); ++rank) {
      if (!picture.memory.has(rank)) continue;
      const item = element("li", "");
      const moment = picture.memory.peakAt(rank);
      item.append(jumpButton(`rank ${rank}: at most ${Number(picture.memory.peakOf(rank).toPrecision(6))}`,
        () => this.page.showRank(at, rank, moment, moment)));
      list.append(item);
    }
    this.hideEmpty(list);
  }

  hideEmpty(list) {
    list.parentElement.hidden = list.children.length === 0;
  }

  // The text is one node, which a browser lays out only when the pane is opened.
  fillOrder(pane, picture, at) {
    pane.textContent = picture.text.text;
    this.texts[at] = pane;
    pane.addEventListener("click", (event) => {
      const position = this.positionAt(event.clientX, event.clientY);
      const entry = position === undefined ? undefined : picture.text.entryAt(position);
      const task = entry ? picture.taskOfEntry(...entry) : none;
      if (task !== none) this.page.choose(at, task, true);
    });
    this.hideEmptyText(pane);
  }

  hideEmptyText(pane) {
    pane.parentElement.hidden = pane.textContent === "";
  }

  positionAt(x, y) {
    if (document.caretPositionFromPoint) return document.caretPositionFromPoint(x, y)?.offset;
    return document.caretRangeFromPoint?.(x, y)?.startOffset;
  }

  // Selects the entry of a task in the order's text, if the pane is open.
  showEntry(at, task) {
    const picture = this.pictures[at];
    const pane = this.texts[at];
    if (!pane.parentElement.open) return;
    const span = picture.text.spanOf(picture.rankOf(task), picture.tasks.entry[task]);
    if (!span) return;
    const range = document.createRange();
    range.setStart(pane.firstChild, span[0]);
    range.setEnd(pane.firstChild, span[1]);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    pane.scrollTop += range.getBoundingClientRect().top - pane.getBoundingClientRect().top -
      pane.clientHeight / 2;
  }
}

// The words that appear beside the pointer.
class Hint {
  constructor() {
    this.box = document.getElementById("hint");
  }

  hide() {
    this.box.hidden = true;
  }

  show(lines, x, y) {
    this.box.replaceChildren(...lines.map((line) => element("div", line)));
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    this.box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    this.box.style.top = `${Math.max(4, y + 18 + height > innerHeight ? y - height - 8 : y + 18)}px`;
  }

  wordsOfTask(picture, task) {
    const { tasks } = picture;
    const listed = picture.origin === "listed";
    const times = listed ? `at index ${tasks.begin[task]} of its order`
      : `from ${picture.time(tasks.begin[task])} to ${picture.time(tasks.end[task])}, ` +
        `${picture.time(tasks.end[task] - tasks.begin[task])} long${this.wordsOfQuantizing(picture, task)}`;
    return [picture.placedLabel(task), times, ...this.wordsOfCauses(picture, task)];
  }

  wordsOfQuantizing(picture, task) {
    const takes = picture.tasks.quantizing?.[task] ?? 0;
    return takes > 0 ? `, ${picture.time(takes)} of it quantizing` : "";
  }

  wordsOfCauses(picture, task) {
    if (picture.tasks.bound.length === 0) return [];
    const cause = picture.causeOf(task);
    const began = cause === none ? "began at once: it waited for nothing"
      : `began when ${picture.placedLabel(cause)} let it`;
    return [began, ...this.named("waited for", picture, picture.tasks.waitsFor(task)),
      ...this.named("is waited for by", picture, picture.tasks.waiters(task))];
  }

  named(what, picture, tasks) {
    if (tasks.length === 0) return [];
    const most = [...tasks.slice(0, 4)].map((task) => picture.placedLabel(task));
    const more = tasks.length > 4 ? ` and ${tasks.length - 4} more` : "";
    return [`${what} ${most.join(", ")}${more}`];
  }

  wordsOfBubble(picture, bubble) {
    const { begin, end } = picture.bubbles;
    return [`idle from ${picture.time(begin[bubble])} to ${picture.time(end[bubble])}`,
      this.causeOfBubble(picture, bubble)];
  }

  causeOfBubble(picture, bubble) {
    const { bubbles } = picture;
    const next = bubbles.next[bubble] - 1;
    const on = bubbles.on[bubble] - 1;
    if (next < 0 || on < 0) return bubbles.causes[bubbles.cause[bubble]];
    const bytes = bubbles.exposed[bubble];
    return `${picture.labelOf(next)} waits for ${picture.placedLabel(on)}` +
      (bytes > 0 ? `, ${picture.time(bytes)} of it for bytes` : "");
  }
}
