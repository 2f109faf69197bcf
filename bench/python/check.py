"""What Python adds to a check: capo.check beside the C++ calls that it makes, in one process.

    cmake --build build/ci --target bench_python_check_call _capo
    PYTHONPATH=build/ci/python python bench/python/check.py build/ci/bench/libbench_python_check_call.so
    PYTHONPATH=build/ci/python python bench/python/check.py LIBRARY --instructions

The order is that of bench_plan: interleaved 1F1B, 64 ranks of two chunks, 512 microbatches, which is 391,168 tasks with
their transfers. Calls of Python and of C++ alternate, and the ratio is that of their medians, in the
processor's time. With `--instructions`
valgrind counts what a process executes for three calls and for one; half of the difference is a call.
"""

import ctypes
import functools
import re
import statistics
import subprocess
import sys
import time

import capo

CALLS = 41
MEGATRON = {"pp": 64, "vp": 2, "microbatches": 512}
FORMS = ("Schedule", "text", "lists")


def loaded(path):
    library = ctypes.CDLL(path)
    library.hold.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.hold.restype = ctypes.c_bool
    for call in (library.check_schedule, library.check_lists, library.check_text):
        call.restype = ctypes.c_double
    library.check_text.argtypes = [ctypes.c_char_p]
    return library


def judged(call):
    start = time.process_time()
    report = call()
    seconds = time.process_time() - start
    assert report.accepted, str(report)
    return seconds


def calls_of(form, library):
    """The call in Python and that in C++; each returns its seconds."""
    lists = capo.megatron.orders(**MEGATRON)
    if form == "lists":
        assert library.hold(b"<order>", str(lists).encode())
        return functools.partial(judged, lambda: capo.check(lists, topology="loop")), library.check_lists
    text = capo.Schedule(lists, topology="loop").to_order()
    assert library.hold(b"<order>", text.encode())
    if form == "text":
        held = text.encode()
        return functools.partial(judged, lambda: capo.check(text)), lambda: library.check_text(held)
    schedule = capo.Schedule(text)
    return functools.partial(judged, lambda: capo.check(schedule)), library.check_schedule


def print_times(path):
    library = loaded(path)
    print(f"capo {capo.__version__}, medians of {CALLS} calls in the processor's time, Python and C++ in turn")
    print(f"{'form':10}{'Python':>13}{'C++':>13}{'ratio':>8}")
    for form in FORMS:
        python, own = calls_of(form, library)
        pairs = [(python(), own()) for _ in range(CALLS)]
        assert all(seconds > 0 for _, seconds in pairs), "the C++ call does not accept the order"
        ours, theirs = (statistics.median(each) for each in zip(*pairs))
        print(f"{form:10}{ours * 1e3:10.1f} ms{theirs * 1e3:10.1f} ms{ours / theirs:8.3f}", flush=True)


def instructions(path, form, side, calls):
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    command += [sys.executable, __file__, path, "--call", form, side, str(calls)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return int(re.search(r"I +refs: +([\d,]+)", told)[1].replace(",", ""))


def print_instructions(path):
    print(f"capo {capo.__version__}, instructions of a call")
    print(f"{'form':10}{'Python':>15}{'C++':>15}{'ratio':>8}")
    for form in FORMS:
        ours, theirs = (
            (instructions(path, form, side, 3) - instructions(path, form, side, 1)) // 2 for side in ("python", "c++")
        )
        print(f"{form:10}{ours:15,}{theirs:15,}{ours / theirs:8.3f}", flush=True)


def main():
    path, *asked = sys.argv[1:]
    if not asked:
        print_times(path)
    elif asked == ["--instructions"]:
        print_instructions(path)
    else:
        _, form, side, calls = asked
        call = calls_of(form, loaded(path))[side == "c++"]
        for _ in range(int(calls)):
            assert call() > 0


if __name__ == "__main__":
    main()
