"""What `./dev upstream` compares and how, without a network: releases here are a few lines of our own."""

import contextlib
import io
import json
import sys
import types
import unittest
import zipfile
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "upstream"))

import of_mcore  # noqa: E402
import of_te  # noqa: E402
import of_torch  # noqa: E402
import pypi  # noqa: E402
from extract import definitions, scope_of  # noqa: E402
from questions import Question, apart, compare, compare_definitions, modelled  # noqa: E402

SCHEDULES = '''
from abc import ABC
import torch.distributed as dist
from torch.nn import Loss
from ._utils import twice
from .stage import Stage

KIND = dist.Kind.SEND | None

@dist.once
def rows(number, kind: "Loss" = None):
    """How many."""
    from torch._dynamo import OptimizedModule
    return twice(number) if not isinstance(number, OptimizedModule) else None

class Schedule(Stage, ABC):
    def order(self):
        return [rows(1)]
'''


class Extractions(unittest.TestCase):
    def test_runs_a_file_without_what_it_imports(self):
        scope = scope_of({"schedules.py": SCHEDULES, "_utils.py": "def twice(n):\n    return 2 * n\n"}, "schedules.py")
        self.assertEqual(scope["Schedule"]().order(), [2])

    def test_takes_stand_ins_by_the_name_that_is_imported(self):
        scope = scope_of({"a.py": "from torch import empty as make\nmade = make(3)\n"}, "a.py", {"empty": lambda n: [n]})
        self.assertEqual(scope["made"], [3])

    def test_looks_into_conditions_and_attempts(self):
        scope = scope_of({"a.py": "try:\n    import torch\n    has = True\nexcept ImportError:\n    has = False\n"}, "a.py")
        self.assertTrue(scope["has"])


class Definitions(unittest.TestCase):
    OF = "def a(x):\n    return x\n\nclass B:\n    def c(self):\n        return 1\n"

    def test_are_named_with_their_class(self):
        self.assertEqual(sorted(definitions(self.OF)), ["B", "B.c", "a"])

    def test_do_not_change_with_words_and_layout(self):
        spoken = self.OF.replace("    return x", '    """Gives it back."""\n\n    # as it is\n    return (x)')
        self.assertEqual(definitions(spoken)["a"], definitions(self.OF)["a"])

    def test_change_with_code(self):
        self.assertNotEqual(definitions(self.OF.replace("return x", "return -x"))["a"], definitions(self.OF)["a"])

    def test_are_those_that_are_modelled(self):
        self.assertEqual(sorted(modelled({"f.py": self.OF}, ["a", "*.c"])), ["B.c", "a"])

    def test_are_new_gone_or_other_code(self):
        said = []
        self.assertEqual(compare_definitions({"same": "1", "was": "2", "other": "3"}, {"same": "1", "is": "2", "other": "4"}, said.append), 3)
        self.assertEqual(said, ["  definitions: 1 of 3 as stored", "    new: is", "    gone: was", "    other code: other"])


def raising(text):
    def ask():
        raise ValueError(text)
    return ask


class Comparisons(unittest.TestCase):
    def said(self, questions, every=False):
        said = []
        return compare(questions, said.append, every), said

    def test_count_by_area_and_tell_what_differs(self):
        asked = [Question("tables", "a", ["1,2"], lambda: ["1,2"]), Question("tables", "b", ["1,2"], lambda: ["1,3"]),
                 Question("tables", "c", ["1"], lambda: ["2"]), Question("slots", "a", 1, lambda: 1)]
        self.assertEqual(self.said(asked), (2, ["  tables: 1 of 3 as stored", "    b and 1 more: row 0, place 1: stored 2, now 3",
                                                "  slots: 1 of 1 as stored"]))
        self.assertIn("    c: row 0, place 0: stored 1, now 2", self.said(asked, every=True)[1])

    def test_put_together_what_parts_alike(self):
        asked = [Question("a", str(n), ["1"], raising("no")) for n in range(3)]
        self.assertEqual(self.said(asked)[1], ["  a: 0 of 3 as stored", "    0 and 2 more: now ValueError: no"])
        self.assertEqual(self.said(asked, every=True)[1][1:], [f"    {n}: now ValueError: no" for n in range(3)])

    def test_name_five_kinds_at_most(self):
        asked = [Question("a", name, name, lambda: "z") for name in "abcdefg"]
        self.assertEqual(self.said(asked)[1][5:], ["    e: stored e, now z", "    and 2 other kinds; --all names each"])

    def test_take_what_is_raised_as_the_answer(self):
        asked = [Question("a", "1", "ValueError: no", raising("no\nmore")), Question("a", "2", "ValueError", raising("")),
                 Question("a", "3", None, raising("no"))]
        self.assertEqual(self.said(asked), (1, ["  a: 2 of 3 as stored", "    3: now ValueError: no"]))

    def test_say_where_answers_part(self):
        self.assertEqual(apart(["1"], ["1", "2"]), "stored 1 rows, now 2")
        self.assertEqual(apart(["1,2"], ["1"]), "row 0, place 1: stored 2, now the end")
        self.assertEqual(apart([1, 2], [1, 3]), "row 1, place 0: stored 2, now 3")
        self.assertTrue(apart(2, ["x" * 500]).endswith("x..."))
        self.assertEqual(apart(b"1", b"2"), "another table")


def wheel(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


class Pypi:
    """An index with wheels that answers ranges."""

    def __init__(self, wheels):
        self.wheels, self.sent = wheels, 0

    def opened(self, url, Range="", **_):
        if url.startswith("https://pypi.org/"):
            files = [{"filename": name, "url": name, "size": len(data)} for name, data in self.wheels.items()]
            return contextlib.closing(io.BytesIO(json.dumps({"files": files}).encode()))
        begin, end = map(int, Range.removeprefix("bytes=").split("-"))
        data = self.wheels[url][begin:end + 1]
        self.sent += len(data)
        return contextlib.nullcontext(types.SimpleNamespace(status=206, read=lambda: data))


class Fetching(unittest.TestCase):
    def setUp(self):
        files = {"p/a.py": "a = 1\n", "p/large.so": "x" * 4_000_000, "p/b.py": "b = 1\n"}
        self.pypi = Pypi({"p-1.9.0-py3-none-any.whl": wheel(files), "p-1.10.0-py3-none-any.whl": wheel(files),
                          "p-1.11.0rc1-py3-none-any.whl": b"", "p-1.12.0.tar.gz": b""})
        patch = mock.patch.object(pypi, "opened", self.pypi.opened)
        patch.start()
        self.addCleanup(patch.stop)

    def test_takes_the_newest_release_and_a_part_of_its_wheel(self):
        self.assertEqual(pypi.read("p", None, {"a.py": "p/a.py"}), ("1.10.0", {"a.py": "a = 1\n"}))
        self.assertLess(self.pypi.sent, 1_000_000)

    def test_takes_the_release_that_is_asked_for(self):
        self.assertEqual(pypi.read("p", "1.9.0", {"b.py": "p/b.py"})[0], "1.9.0")

    def test_refuses_what_is_not_there(self):
        with self.assertRaisesRegex(pypi.NoRelease, "no wheel of 2.0; the newest is 1.10.0"):
            pypi.read("p", "2.0", {})
        with self.assertRaisesRegex(pypi.NoRelease, "p 1.10.0 has no p/c.py"):
            pypi.read("p", None, {"c.py": "p/c.py"})


class Commands(unittest.TestCase):
    def run_main(self, arguments, read):
        said = []
        spec = mock.patch.object(pypi, "read", read)
        with spec, contextlib.redirect_stderr(io.StringIO()) as errors:
            command = {"__name__": "upstream", "__file__": str(ROOT / "tools/upstream/__main__.py")}
            exec((ROOT / "tools/upstream/__main__.py").read_text(), command)
            return command["main"](arguments, said.append), said, errors.getvalue()

    def test_say_that_pypi_is_out_of_reach(self):
        code, _, errors = self.run_main([], mock.Mock(side_effect=pypi.Unreachable("no route")))
        self.assertEqual((code, errors), (5, "dev upstream: PyPI cannot be reached: no route\n"))

    def test_tell_what_they_are(self):
        self.assertEqual(self.run_main(["--help"], None)[0], 0)

    def test_say_what_there_is_not(self):
        self.assertEqual(self.run_main(["torch==0"], mock.Mock(side_effect=pypi.NoRelease("none")))[0], 2)
        self.assertEqual(self.run_main(["jax"], None)[2], "dev upstream: there are torch, transformer-engine, megatron-core, and no jax\n")

    def test_name_what_differs(self):
        read = mock.Mock(return_value=("9.0", {name: "x = 1\n" for name in of_mcore.FILES}))
        code, said, _ = self.run_main(["megatron-core==9.0"], read)
        self.assertEqual(read.call_args.args[:2], ("megatron-core", "9.0"))
        self.assertEqual(code, 1)
        self.assertIn("    gone: get_schedule_table", said)
        self.assertIn("  schedule tables: 0 of 4 as stored", said)


GRAPH = '''
from math import ceil
import torch
from .utils import make_weak_ref

def make_graphed_callables(modules, samples, _order, num_warmup_iters, **_):
    graphs = [torch.cuda.CUDAGraph() for _ in range(9)]
    outputs = {}
    for entry in _order:
        if entry == 0:
            raise ValueError("no chunk 0")
        at = abs(ceil(entry)) - 1
        if ceil(entry) != entry:
            modules[at].backward_dw()
        elif entry > 0:
            with torch.cuda.graph(graphs[at]):
                outputs[at] = modules[at](samples[at][0])
        else:
            torch.autograd.backward((outputs[at],))
'''


class PretendedTorch(unittest.TestCase):
    def kind(self, order, layers=1):
        return of_te.Release({"graph.py": GRAPH}).kind({"order": order, "layers": [1] * layers, "need_wgrad": [True] * layers})

    def test_tells_who_refuses_an_order(self):
        self.assertIsNone(self.kind([1, -1, -1.5]))
        self.assertEqual(self.kind([1, 0, -1]), "TE.ValueError")
        self.assertEqual(self.kind([-1, 1]), "py.KeyError")
        self.assertEqual(self.kind([1, -1, -1]), "torch.RuntimeError")
        self.assertEqual(self.kind([1, 1, -1, -1]), "torch.RuntimeError")
        self.assertEqual(self.kind([1, -1.5, -1]), "store.RuntimeError")


class Stored(unittest.TestCase):
    def test_definitions_are_of_what_is_modelled(self):
        stored = json.loads((ROOT / "tests/data/upstream.json").read_text())
        for of in (of_torch, of_te, of_mcore):
            with self.subTest(of.PACKAGE):
                self.assertTrue(stored[of.PACKAGE]["definitions"])
                for name in of.VECTORS:
                    self.assertTrue((ROOT / "tests/data" / name).exists(), name)


if __name__ == "__main__":
    unittest.main()
