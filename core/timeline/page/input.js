// Mouse, touch and keyboard.
//
//   drag         pans, in time and over the ranks      wheel          goes over the ranks
//   two fingers  pinch                                 Ctrl + wheel   zooms at the pointer
//   arrows + -   pan and zoom                          Shift + wheel  pans in time

function placeOn(canvas, event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function listenToWheel(page) {
  page.canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [x] = placeOn(page.canvas, event);
    const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey) page.zoom(Math.exp(-event.deltaY / 200), x);
    else page.pan(sideways, event.shiftKey ? 0 : event.deltaY);
  }, { passive: false });
}

class Pointers {
  constructor(page) {
    this.page = page;
    this.down = new Map();
    const { canvas } = page;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => this.release(event));
    }
    canvas.addEventListener("pointerleave", () => page.leave());
  }

  press(event) {
    const place = placeOn(this.page.canvas, event);
    this.down.set(event.pointerId, place);
    this.moved = 0;
    // A pointer that a script made has no capture to give.
    try {
      this.page.canvas.setPointerCapture(event.pointerId);
    } catch {
      return;
    }
  }

  move(event) {
    const [x, y] = placeOn(this.page.canvas, event);
    const last = this.down.get(event.pointerId);
    if (!last) return this.page.hover(x, y, event.clientX, event.clientY);
    this.moved += Math.abs(x - last[0]) + Math.abs(y - last[1]);
    if (this.down.size === 2) this.pinch(event.pointerId, x, y);
    else this.page.pan(last[0] - x, last[1] - y);
    return this.down.set(event.pointerId, [x, y]);
  }

  pinch(id, x, y) {
    const [before] = [...this.down].filter(([each]) => each !== id).map(([, place]) => place);
    const own = this.down.get(id);
    const wide = (place) => Math.max(8, Math.hypot(place[0] - before[0], place[1] - before[1]));
    this.page.zoom(wide([x, y]) / wide(own), (x + before[0]) / 2);
  }

  release(event) {
    if (!this.down.delete(event.pointerId)) return;
    if (event.type === "pointerup" && this.moved < 4) this.page.click(...placeOn(this.page.canvas, event));
  }
}

function keysOf(page, search) {
  const step = () => page.view.room / 8;
  return {
    ArrowLeft: () => page.pan(-step(), 0),
    ArrowRight: () => page.pan(step(), 0),
    ArrowUp: () => page.pan(0, -60),
    ArrowDown: () => page.pan(0, 60),
    PageUp: () => page.pan(0, -page.view.height),
    PageDown: () => page.pan(0, page.view.height),
    "+": () => page.zoom(1.5),
    "=": () => page.zoom(1.5),
    "-": () => page.zoom(1 / 1.5),
    Home: () => page.showAll(),
    "0": () => page.showAll(),
    f: () => page.foldAll(),
    "/": () => search.focus(),
    Escape: () => page.leave(),
  };
}

function listenToKeys(page, search) {
  const keys = keysOf(page, search);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
}

function listenToSearch(page, search) {
  const answer = document.getElementById("found");
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") answer.textContent = page.search(search.value);
    if (event.key === "Escape") search.blur();
  });
}

function listenToButtons(page) {
  const actions = {
    closer: () => page.zoom(1.5),
    farther: () => page.zoom(1 / 1.5),
    all: () => page.showAll(),
    fold: () => page.foldAll(),
  };
  for (const [name, action] of Object.entries(actions)) {
    document.getElementById(name).addEventListener("click", action);
  }
}

function listenToSurroundings(page) {
  new ResizeObserver(() => {
    page.resize();
    page.change();
  }).observe(page.canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    page.painter.readColours();
    page.change();
  });
}

function start() {
  const page = new Page(JSON.parse(document.getElementById("data").textContent));
  const search = document.getElementById("search");
  listenToWheel(page);
  page.pointers = new Pointers(page);
  listenToKeys(page, search);
  listenToSearch(page, search);
  listenToButtons(page);
  listenToSurroundings(page);
  window.capo = {
    tasks: page.tasks,
    goto: (rank, chunk, microbatch, kind) => page.goto(rank, chunk, microbatch, kind),
    zoom: (factor) => page.zoom(factor),
    frameTimes: () => page.times.slice(),
  };
}

start();
