#!/usr/bin/env python3
"""Measures the page of `capo draw -o step.html` in headless Chromium: how long it takes to load, and
the script's time a frame, ranks folded and unfolded, at full view and a hundred times closer.

    bench/frames.py build/ci/cli/capo [--schedule 1f1b] [--ranks 32] [--microbatches 3125] [--frames 60]
                    [--window 1400,900] [--scale 1]

The step is 1F1B of 200,000 tasks unless another is named. A frame's time is what
window.capo.frameTimes() says of a frame that the browser asked for, and before each the view moves by
some pixels, as a reader's drag does. Prints medians in milliseconds.
"""

import argparse
import http.server
import json
import pathlib
import queue
import subprocess
import tempfile
import threading

DRIVE = """<script>
(async () => {
  const seen = { load: performance.now(), tasks: window.capo.tasks, views: [] };
  const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", { key: name, cancelable: true }));
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const view = async (name) => {
    await frame();
    const times = [];
    for (let at = 0; at < FRAMES; ++at) {
      key(at % 20 < 10 ? "ArrowRight" : "ArrowLeft");
      await frame();
      times.push(window.capo.frameTimes().at(-1));
    }
    times.sort((a, b) => a - b);
    seen.views.push({ name, median: times[Math.floor(times.length / 2)], most: times.at(-1) });
  };
  for (const folding of FOLDINGS) {
    key("Home");
    await view(`${folding}, full view`);
    window.capo.zoom(100);
    await view(`${folding}, a hundred times closer`);
    key("f");
  }
  await fetch("/seen", { method: "POST", body: JSON.stringify(seen) });
})();
</script>
"""


def page(capo, folder, schedule, ranks, microbatches):
    generate = ["generate", schedule, "--ranks", ranks, "--microbatches", microbatches, "-o", "step.order"]
    draw = ["draw", "step.order", "--cost", "f=12,b=13,w=9,comm=1", "--max-tasks", 10**9, "-o", "step.html"]
    for arguments in generate, draw:
        subprocess.run([capo, *map(str, arguments)], cwd=folder, check=True)
    return (folder / "step.html").read_text()


def served(text, seen):
    """A server of the page, which puts what the page has seen into a queue."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        def do_POST(self):
            seen.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def driven(text, folder, foldings, options):
    drive = DRIVE.replace("FRAMES", str(options.frames)).replace("FOLDINGS", json.dumps(foldings))
    end = text.rindex("</body>")
    seen = queue.Queue()
    server = served(text[:end] + drive + text[end:], seen)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                f"--force-device-scale-factor={options.scale:g}", f"--window-size={options.window}",
                "--remote-debugging-port=0",
                f"--user-data-dir={folder}/profile", f"http://127.0.0.1:{server.server_port}/"]
    browser = subprocess.Popen(chromium, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={"HOME": str(folder), "PATH": "/usr/bin:/bin"})
    try:
        return seen.get(timeout=300)
    finally:
        browser.terminate()
        browser.wait()
        server.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("capo", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--schedule", default="1f1b")
    parser.add_argument("--ranks", type=int, default=32)
    parser.add_argument("--microbatches", type=int, default=3125)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--window", default="1400,900", help="width and height in pixels")
    parser.add_argument("--scale", type=float, default=1, help="pixels of the device for each of them")
    options = parser.parse_args()
    # More than sixteen ranks come folded.
    foldings = ["folded", "unfolded"] if options.ranks > 16 else ["unfolded", "folded"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        text = page(options.capo, folder, options.schedule, options.ranks, options.microbatches)
        seen = driven(text, folder, foldings, options)
    print(f"{seen['tasks']} tasks of {options.schedule} on {options.ranks} ranks, "
          f"{len(text.encode()) / 1e6:.1f} MB, {options.window} at {options.scale:g}, loaded in {seen['load'] / 1e3:.2f} s")
    for view in seen["views"]:
        print(f"{view['name'] + ':':36} median {view['median']:4.1f} ms a frame, at most {view['most']:.1f}")


if __name__ == "__main__":
    main()
