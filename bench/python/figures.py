"""What a user of the package waits for: import, a check of a list of 1,000 entries, arrays of a long timeline.

    PYTHONPATH=build/ci/python python bench/python/figures.py [PATH OF A WHEEL]

The timeline is of ten million tasks, which takes five GB of memory; its columns are read
by NumPy where they lie. With a wheel the time that pip takes to install it into a new environment is
measured as well.
"""

import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
import venv

import capo
import numpy

CALLS = 101
ENTRIES = 1000
TIMELINE = {"name": "1f1b", "ranks": 16, "microbatches": 312_500}


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def milliseconds(call, calls=CALLS):
    return statistics.median(seconds_of(call) for _ in range(calls)) * 1e3


def processor_ms(code):
    """Of a process that runs the code: the processor's time, which others on the machine change little."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def print_import():
    alone, whole = zip(*((processor_ms("pass"), processor_ms("import capo")) for _ in range(CALLS)))
    more = statistics.median(whole) - statistics.median(alone)
    print(f"import capo: {more:.1f} ms of the processor more than Python alone, medians of {CALLS} processes")


def print_check():
    half = ENTRIES // 4
    right = [1, 2, -2, -1] * half
    slip = right[:-1] + [-2]
    for name, order in (("right", right), ("wrong in its last entry", slip)):
        assert capo.check(order).accepted == (name == "right")
        print(f"check of {len(order)} entries, {name}: {milliseconds(lambda: capo.check(order)):.3f} ms, median of {CALLS}")


def print_arrays():
    start = time.perf_counter()
    step = capo.simulate(capo.generate(**TIMELINE), cost={"f": 1, "b": 2, "comm": 0.1})
    made = time.perf_counter() - start
    tracemalloc.start()
    begin = seconds_of(lambda: numpy.asarray(step.begin))
    taken = tracemalloc.get_traced_memory()[1]
    columns = [numpy.asarray(getattr(step, name)) for name in ("begin", "end", "rank", "stage", "microbatch", "kind")]
    assert all(not column.flags.owndata for column in columns)
    assert all(numpy.shares_memory(column, numpy.asarray(getattr(step, name))) for column, name in
               zip(columns, ("begin", "end", "rank", "stage", "microbatch", "kind")))
    size = sum(column.nbytes for column in columns)
    print(f"timeline of {len(step):,} tasks: made in {made:.1f} s; a column as an array in {begin * 1e6:.0f} us and"
          f" {taken:,} bytes, none of the six ({size:,} bytes) is a copy")


def print_install(wheel):
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [pathlib.Path(folder) / "bin" / "pip", "install", "-q", "--no-index", "--no-deps", wheel]
        print(f"install of the wheel: {seconds_of(lambda: subprocess.run(pip, check=True)):.1f} s")


def main():
    print(f"capo {capo.__version__}, Python {sys.version.split()[0]}, NumPy {numpy.__version__}")
    print_import()
    print_check()
    for wheel in sys.argv[1:]:
        print_install(wheel)
    print_arrays()


if __name__ == "__main__":
    main()
