"""The published JSON schemas hold: for every report capo prints, for every schedule it writes or accepts, and for
every model.json it reads or refuses.

Run by ctest: schemas_test.py CAPO SOURCE_DIR. Prints the counts; fails on the first document that a
schema refuses, and if there was nothing to compare.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

# What a schema cannot say of a model.
MODEL_CONTENT = (
    "there is no module",
    "stands twice",
    "is on no rank",
    "performs `",
    "is no action of this group",
    "no multiple of",
    "more than `",
)

# The members that the example leaves out.
MORE_MODELS = (
    {},
    {"schema": 1, "comment": None, "topology": "v", "p2p": "flush", "ep_overlap": True, "transfers": "buffered"},
    {"modules": {"a": {}}, "layers": "a"},
    {"modules": {"a": {"flags": {"delay_wgrad": True}}}, "layers": [["a"], ["a", "a"]]},
    {"modules": {"a": {"kind": "attention", "shape": {"tokens": 4, "hidden": 2, "heads": 4, "kv_heads": 2, "head_dim": 3,
                                                      "sequence": 2}}}, "layers": "a"},
    {"modules": {"a": {"bytes": {"input": 0, "weight": 2**53 - 1}}}, "layers": [[["a"]], []]},
    {"configuration": {"layers": 2, "dense_layers": 1, "hidden": 8, "ffn": 8, "heads": 2, "kv_heads": 2, "head_size": 4,
                       "latent": {"q_rank": 1, "kv_rank": 1, "nope_size": 1, "rope_size": 1, "value_size": 1},
                       "qk_norm": True, "experts": 2, "top_k": 1, "expert_ffn": 4, "shared_experts": 1, "vocabulary": 9,
                       "tied_embedding": False, "sequence": 2, "micro_batch": 1, "capacity_factor": 1.5,
                       "tensor_parallel": 1, "expert_parallel": 2, "expert_tensor_parallel": 1, "context_parallel": 1,
                       "dtype": "fp8", "recompute": "full", "comment": ["mine"]},
     "modules": {"a": {"kind": "moe-layer", "mlp": "experts"}}, "layers": "a"},
)

STRANGE = (None, True, -1, 1.5, 2**53, "", "x", [], [[]], {}, {"x": 1})


def variants(document):
    """The document with each value in turn replaced, left out, and each object given a key too many."""

    def walk(value, path):
        yield path
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, member in members:
            yield from walk(member, path + [key])

    for path in walk(document, []):
        for strange in STRANGE:
            if not path:
                yield strange
                continue
            changed = copy.deepcopy(document)
            holder = changed
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = strange
            yield changed
        if path:
            changed = copy.deepcopy(document)
            holder = changed
            for key in path[:-1]:
                holder = holder[key]
            del holder[path[-1]]
            yield changed
        changed = copy.deepcopy(document)
        holder = changed
        for key in path:
            holder = holder[key]
        if isinstance(holder, dict):
            holder["unheard-of"] = 1
            yield changed


def validator_of(root: pathlib.Path, name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((root / "docs/schema" / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def check_models(run, root: pathlib.Path) -> tuple[int, int]:
    """Schema and reader agree, but for what only the reader knows: how many they took and refused."""
    schema = validator_of(root, "model")
    example = json.loads((root / "examples/model.json").read_text())
    for model in (example, *MORE_MODELS):
        schema.validate(model)
    taken = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.json"
        for model in (model for whole in (example, *MORE_MODELS) for model in (whole, *variants(whole))):
            path.write_text(json.dumps(model))
            result = run("check", "--order", "[1, -1]", "--format", "json", "--model", str(path))
            valid = schema.is_valid(model)
            if result.returncode not in (3, 4):  # a topology that does not fit the order is usage
                assert result.returncode in (0, 1, 2), result.stderr
                assert valid, f"read, and the schema refuses it: {json.dumps(model)}"
                taken += 1
                continue
            message = json.loads(result.stdout)["diagnostics"][0]["message"]
            content = any(words in message for words in MODEL_CONTENT)
            assert content or not valid, f"{message}: {json.dumps(model)}"
            refused += 1
    return taken, refused


def hold(validator: jsonschema.Draft202012Validator, document) -> None:
    """The schema takes the document, and none that lacks a member of an object in it or has one too many."""
    validator.validate(document)

    def objects(value, path):
        if isinstance(value, dict):
            yield path
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, member in members:
            yield from objects(member, path + [key])

    def changed(path, change):
        copied = copy.deepcopy(document)
        holder = copied
        for key in path:
            holder = holder[key]
        change(holder)
        return copied

    for path in objects(document, []):
        holder = document
        for key in path:
            holder = holder[key]
        assert not validator.is_valid(changed(path, lambda members: members.update({"unheard-of": 1}))), path
        for name in holder:
            assert not validator.is_valid(changed(path, lambda members, name=name: members.pop(name))), (path, name)


def check_comparisons_and_sweeps(run, root) -> int:
    """Several orders side by side, and grids with points that are simulated, refused and beyond a limit."""
    comparison, sweep = validator_of(root, "comparison"), validator_of(root, "sweep")
    documents = 0
    schedules = [str(path) for path in sorted((root / "examples/schedules").glob("*.order"))]
    assert len(schedules) >= 2
    for flags in ([], ["--links", "queued", "--cost", "comm=0.5"], ["--memory", "3.5"]):
        hold(comparison, json.loads(run("compare", *schedules, *flags, "--format", "json").stdout))
        documents += 1
    kinds = set()
    grid = ("1f1b", "zb", "dualpipe", "--ranks", "4,5", "--microbatches", "8")
    for flags in ([], ["--chunks", "1,2"], ["--memory", "4,8.5", "--cost", "f=2"], ["--max-entries", "90"]):
        printed = json.loads(run("sweep", *grid, *flags, "--format", "json").stdout)
        hold(sweep, printed)
        kinds |= {"refused" in each for each in printed["runs"]}
        documents += 1
    assert kinds == {False, True}
    return documents


def check_optimised(run, root) -> int:
    """Reports of searches: proved, out of moves, within a limit that not every schedule keeps to, with one rank, with calls of
    weight gradients, and with all orders."""
    optimised = validator_of(root, "optimise")
    seen, calls, nodes = [], set(), set()
    for flags in (
        ["--ranks", "3", "--microbatches", "4"],
        ["--ranks", "8", "--microbatches", "16", "--memory", "4", "--cost", "f=5,b=6,w=4", "--moves", "20000", "--time", "10m"],
        ["--ranks", "1", "--microbatches", "1", "--objective", "span"],
        ["--ranks", "2", "--microbatches", "4", "--fuse-w", "3", "--cost", "w=3,fuse=0.4", "--moves", "1000"],
        ["--ranks", "3", "--microbatches", "4", "--placement", "bidirectional", "--cost", "f=10,b=16,w=4,comm=1", "--memory", "2"],
    ):
        printed = json.loads(run("optimise", *flags, "--format", "json").stdout)
        hold(optimised, printed)
        calls.add(printed["fuse_w"]["calls"] > 0)
        nodes.add(printed["exhaustive_nodes"] > 0)
        seen += [(printed["ended"], each["fits"]) for each in printed["named"]]
    assert {("proof", True), ("moves", True), ("moves", False)} <= set(seen), seen
    assert calls == nodes == {False, True}, (calls, nodes)
    return 5


def check_simulations(run, root) -> int:
    """Reports of simulations: published schedules, and the orders among the examples that can run."""
    simulation = validator_of(root, "simulation")
    reports = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ("1f1b", "zbv-1p", "dualpipe", "hanayo", "torch:DualPipeV"):
            path = pathlib.Path(folder) / "s.order"
            run("generate", name, "--ranks", "4", "--microbatches", "8", "-o", str(path))
            for flags in ([], ["--links", "queued", "--cost", "comm=0.5"], ["--max-items", "0"]):
                simulation.validate(json.loads(run("simulate", str(path), *flags, "--format", "json").stdout))
                reports += 1
    for path in sorted((root / "examples/te2376").glob("*.te")):
        result = run("simulate", str(path), "--ep-overlap", "--cost", "dispatch=1", "--format", "json")
        if result.returncode == 0:
            simulation.validate(json.loads(result.stdout))
            reports += 1
    return reports


def check_inventories(run, root) -> int:
    """What `capo model` prints of each model that there is, and of a file that lacks a size."""
    inventory = validator_of(root, "inventory")
    model = validator_of(root, "model")
    documents = 0
    for line in run("model", "--list").stdout.splitlines():
        name = line.split()[0]
        model.validate(json.loads(run("model", name).stdout))
        for kind in ("transformer-layer", "moe-layer", "grouped-mlp", "layernorm-mlp"):
            inventory.validate(json.loads(run("model", name, "--kind", kind, "--format", "json").stdout))
            documents += 1
    hold(inventory, json.loads(run("model", "tiny", "--kind", "grouped-mlp", "--format", "json").stdout))
    return documents


def check_runs(run, root) -> int:
    """What `capo run` prints, of a right order, a wrong one that is run all the same, and refusals."""
    validator = validator_of(root, "run")
    runs = 0
    hazard = "[1, -1, 1, -1.5, -1, -1.5]"
    for order, flags in (
        ("[1, 1, -1, -1.5, -1, -1.5]", ()),
        ("[1, 1, -1, -1.5, -1, -1.5]", ("--graphs", "per-step", "--replays", "1")),
        ("[1, 2, -2, -1]", ("--modules", "grouped-mlp", "--replays", "0")),
        ("[1, 2, -2, -1]", ("--modules", "layernorm-mlp", "--float64", "sampled", "--float64-samples", "2")),
        (hazard, ("--plan", "te", "--modules", "linear", "--unchecked")),
        (hazard, ("--plan", "te", "--modules", "linear")),
        ("[1, -1, -1]", ()),
        ("[1, -1, -1]", ("--unchecked",)),
    ):
        result = run("run", "--device", "host", "--order", order, *flags, "--format", "json")
        validator.validate(json.loads(result.stdout))
        runs += 1
    for path in sorted((root / "examples").rglob("*.order")):
        result = run("run", "--device", "host", str(path), "--format", "json")
        validator.validate(json.loads(result.stdout))
        runs += 1
    return runs


def main() -> int:
    capo, root = sys.argv[1], pathlib.Path(sys.argv[2])
    report, schedule = validator_of(root, "report"), validator_of(root, "schedule")

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([capo, *arguments], capture_output=True, text=True, cwd=root)

    reports = written = accepted = 0
    for path in sorted((root / "tests/corpus/rules").rglob("*")):
        if path.suffix not in (".te", ".order", ".csv", ".json"):
            continue
        flags_file = path.with_suffix(path.suffix + ".args")
        if not flags_file.exists():
            flags_file = path.with_suffix(".args")
        flags = flags_file.read_text().split() if flags_file.exists() else []
        profiles = [] if "--profile" in flags else ["--profile", "sound,te,mcore,torch"]
        result = run("check", str(path), *flags, *profiles, "--format", "json")
        if not result.stdout:
            continue
        report.validate(json.loads(result.stdout))
        reports += 1
        if result.returncode == 0 and path.suffix == ".json":
            schedule.validate(json.loads(path.read_text()))
            accepted += 1
        converted = run("convert", str(path), *flags, "--to", "json") if result.returncode == 0 else None
        if converted is not None and converted.returncode == 0:
            schedule.validate(json.loads(converted.stdout))
            written += 1
    late = "capo 1\nrank 0: F1.0 B1.0 F1.1 W1.0 B1.1 W1.1  # capo: allow B01: the input is copied"
    suppressing = run("check", "--order", late, "--plan", "te", "--modules", "linear", "--format", "json")
    assert json.loads(suppressing.stdout)["suppressed"]
    report.validate(json.loads(suppressing.stdout))
    # Every action there is, in one order.
    words = [f"{word}-{way}1.0" for word in ("send", "recv", "dispatch", "combine") for way in "FB"]
    order = "capo 1\nrank 0: . F1.0 B1.0 I1.1 W1.1 unshard1 reshard1 reduce1 (" + " ".join(words) + ")"
    converted = run("convert", "--order", order, "--to", "json")
    schedule.validate(json.loads(converted.stdout))
    assert json.loads(converted.stdout)["ranks"][0]["order"][-1] == words
    print(f"{reports} reports, {written} written and {accepted} accepted schedules keep their schemas")
    taken, refused = check_models(run, root)
    print(f"{taken} models read and {refused} refused as their schema has it")
    simulations = check_simulations(run, root)
    print(f"{simulations} simulations keep their schema")
    inventories = check_inventories(run, root)
    print(f"{inventories} inventories keep their schema")
    documents = check_comparisons_and_sweeps(run, root)
    print(f"{documents} comparisons and sweeps keep their schemas")
    print(f"{check_optimised(run, root)} searches keep theirs")
    runs = check_runs(run, root)
    print(f"{runs} runs keep their schema")
    enough = reports > 50 and written > 20 and accepted > 0 and taken > 50 and refused > 400
    return 0 if enough and simulations > 15 and runs > 8 and inventories > 15 else 1


if __name__ == "__main__":
    sys.exit(main())
