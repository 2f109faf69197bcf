"""Certificates of bounds: tools/check_bound.py accepts that of every case, and what was tampered with never shows more than
orders come to that run.

Run by ctest: bound_test.py CAPO SOURCE_DIR. Cases are fixed ones for each kind of argument and step of reasoning, proven
optima of the reference data, and problems by chance. Every field of a certificate is changed in every way that its type
allows. A change is either rejected, with the place, or shows a bound that is true: no more than the certificate's orders
take, which the checker runs. So each kind of argument is tried on each problem, whether capo would use it or not. A field
whose changes are never rejected fails, and so does a step of reasoning that no case has.
"""

import collections
import copy
import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import jsonschema

# The closed form L3 is the argument of memory, and is told so.
BY_L3 = "--ranks 3 --microbatches 12 --placement v --cost f=1,b=2,w=0.2,comm=1 --memory 1 --objective span"
RECOMPUTED = "--ranks 3 --microbatches 4 --cost f=2,b=3,w=1 --mem f=1,b=0,w=-1,keep=0.5 --recompute all --memory 1 --objective span"
# Each step of reasoning is needed for one of these or of those by chance.
CASES = [
    "--ranks 4 --microbatches 8",
    "--ranks 1 --microbatches 1",
    "--ranks 2 --microbatches 4 --chunks 3 --cost f=3,b=1,w=0.7,comm=0.1",
    "--ranks 3 --microbatches 5 --cost r0:f=2,b=5,w=1 --cost r1:f=1,b=1 --cost r2:w=4 --cost r0-r1:comm=0.5 --objective span",
    "--ranks 4 --microbatches 8 --placement bidirectional --cost f=2,b=3,w=1,comm=1 --memory 2 --mem f=1,b=-0.3,w=-0.7",
    "--ranks 3 --microbatches 4 --placement v --chunks 4 --cost comm=2 --memory 1.5 --objective span",
    "--ranks 4 --microbatches 12 --placement bidirectional --cost f=12,b=2,w=0,comm=0.1 --memory 2",
    "--ranks 3 --microbatches 9 --chunks 2 --cost f=3,b=3,w=1,comm=3 --memory 1.5 --objective span",
    "--ranks 8 --microbatches 24 --cost f=12,b=13,w=9,comm=1 --memory 6",
    "--ranks 4 --microbatches 6 --placement v --cost f=0.7,b=5,w=0.7,comm=0.1 --memory 4 --objective span",
    "--ranks 4 --microbatches 9 --cost f=2,b=3,w=1,comm=1 --mem f=1,b=-0.5,w=-0.5 --memory 2.5",
    "--ranks 3 --microbatches 9 --placement v --cost f=3,b=12,w=1,comm=1 --memory 2",
    "--ranks 2 --microbatches 6 --placement v --cost f=2,b=8,w=2,comm=1 --cost c2:b=1 --memory 2 --objective span",
    "--ranks 2 --microbatches 5 --placement v --cost f=10,b=16,w=4,comm=1 --memory 1.5",
    "--ranks 2 --microbatches 4 --placement v --cost f=3,b=12,w=1,comm=1 --memory 1 --objective span",
    "--ranks 3 --microbatches 6 --cost f=5,b=6,w=4 --mem f=1,b=-0.5,w=-0.5 --memory 2",
    "--ranks 5 --microbatches 2 --cost f=3,b=1,w=6,comm=0 --mem f=1,b=-0.9,w=-0.1 --memory 1",
    "--ranks 3 --microbatches 6 --cost f=2,b=3,w=4,comm=1,fuse=0.25 --fuse-w 2",
    "--ranks 2 --microbatches 5 --placement v --cost f=2,b=3,w=4,fuse=0.3 --cost r1:w=2 --memory 2 --fuse-w 4 --objective span",
    "--ranks 2 --microbatches 4 --cost f=3,b=2,w=6,comm=2,fuse=0.5 --memory 2 --fuse-w 4",
    "--ranks 1 --microbatches 8 --cost f=1,b=1,w=4,fuse=0.25 --memory 2 --fuse-w 4",
    "--ranks 3 --microbatches 4 --placement bidirectional --cost f=10,b=16,w=4,comm=1 --memory 2",
    RECOMPUTED,
    "--ranks 3 --microbatches 5 --cost f=2,b=3,w=1 --mem f=1,b=-0.9,w=-0.1,keep=0.5 --recompute r0,r2 --memory 1.2",
    "--ranks 2 --microbatches 4 --cost f=2,b=3,w=1 --mem f=1,b=0,w=-1,keep=0.1 --recompute all --memory 1.4",
    BY_L3,
    "--ranks 2 --microbatches 4 --placement v --cost f=2,b=3,w=4,re=1,fuse=0.5 --mem f=1,b=0,w=-1,keep=0.1 --recompute c1 --fuse-w 2 --memory 1.5",
    "--ranks 4 --microbatches 4 --placement free --cost f=3,b=4,w=2,comm=1 --cost r0-r1:comm=5 --cost r2-r3:comm=5 --memory 2",
    "--ranks 3 --microbatches 6 --placement free --cost f=3,b=4,w=2,comm=1 --cost r1:f=5 --memory 1.2 --mem f=1,b=-0.5,w=-0.5",
    "--ranks 2 --microbatches 4 --placement free --cost f=3,b=4,w=2 --cost c2:f=1,b=2 --memory 1.5 --objective span",
    "--ranks 3 --microbatches 4 --placement free --chunks 1 --cost f=2,b=3,w=4,comm=1,fuse=0.25 --fuse-w 2",
]
STEPS = {"head start", "head wait", "head work", "head memory", "head memory-work", "tail end", "tail wait", "tail work"}
BY_CHANCE = 120
OPTIMA = 20
CHANGES = 6  # of each certificate, of each field


def load(source):
    spec = importlib.util.spec_from_file_location("check_bound", source / "tools" / "check_bound.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_chance(dice):
    placement = dice.choice(["loop", "loop", "v", "bidirectional", "free"])
    ranks = dice.randint(1, 5)
    chunks = dice.randint(1, 3) if placement in ("loop", "free") else 2
    microbatches = dice.randint(1, 6) * (2 if placement == "bidirectional" else 1)
    flags = ["--ranks", ranks, "--microbatches", microbatches, "--placement", placement, "--chunks", chunks]
    for rank in dice.choice([[""], [f"r{rank}:" for rank in range(ranks)]]):
        flags += ["--cost", rank + ",".join(f"{key}={dice.choice([0, 1, 2, 3, 0.7, 13.3])}" for key in "fbw")]
    flags += ["--cost", f"comm={dice.choice([0, 1, 3, 0.1])}", "--objective", dice.choice(["makespan", "span"])]
    keep = dice.choice([0, 0.1, 0.5])
    flags += ["--mem", dice.choice(["f=1,b=0,w=-1", "f=1,b=-0.5,w=-0.5", "f=1,b=-1,w=0", "f=1,b=-0.3,w=-0.7"]) + f",keep={keep}"]
    flags += dice.choice([[], [], ["--recompute", dice.choice(["all", f"r{ranks - 1}", "c1", f"r0c{chunks}"])]])
    if microbatches > (2 if placement == "bidirectional" else 1) and dice.random() < 0.25:
        flags += ["--fuse-w", dice.choice([2, 3, 8]), "--cost", f"r0:w=2,fuse={dice.choice([0, 0.35, 0.5])}"]
    return flags + dice.choice([[], ["--memory", dice.choice([1, 1.5, 2, 2.5, 3])]])


def optima(source, dice):
    """Flags of problems whose optimum is known, and that."""
    rows = json.loads((source / "tests" / "data" / "zb_reference.json").read_text())["rows"]
    for row in dice.sample([row for row in rows if row["kind"] == "optimum" and row["placement"] == "linear"], OPTIMA):
        flags = ["--ranks", row["p"], "--microbatches", row["m"], "--objective", row["objective"]]
        flags += ["--cost", f"f={row['F']!r},b={row['B']!r},w={row['W']!r},comm={row['comm']!r}"]
        flags += ["--mem", ",".join(f"{key}={row['mem_model'][key.upper()]!r}" for key in "fbw")]
        yield flags + ["--memory", row["mem_limit"] if row["mem_limit"] is not None else max(row["peak_mem"])], row


def certificate_of(capo, flags, folder):
    """None where there is no order."""
    file = folder / "bound.json"
    command = [capo, "optimise", *map(str, flags), "--moves", "3000", "--time", "1m", "--bound-out", str(file), "--format", "json"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode == 1 and "there is no such order" in ran.stderr:
        return None
    assert ran.returncode == 0, (command, ran.stderr)
    certificate, report = json.loads(file.read_text()), json.loads(ran.stdout)
    stated = report["lower_bound"][report["objective"]]
    assert certificate["bound"] <= stated, command
    assert ("note:" in ran.stderr) == (certificate["bound"] < stated * (1 - 1e-9)), (command, ran.stderr)
    return certificate


def fields(value, path=()):
    """Every place in a certificate, with numbers of lists left out of its name."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from fields(item, (*path, key))


def name_of(path):
    return ".".join("*" if isinstance(key, int) else key for key in path)


def changes_of(value, dice, path):
    """Other values for a field."""
    if path[-1] == "by":
        return ["start", "end", "wait", "work", "memory", "memory-work", "machine", "L1", "L2", "narrowing", "any placement", "luck"]
    if path[-1] == "placement":
        return ["loop", "v", "bidirectional", "free", *([value[::-1], value[1:]] if isinstance(value, list) else [])]
    if path[-1] == "objective":
        return ["makespan", "span", "peak"]
    if isinstance(value, str):
        words = value.split(" ")
        digits = [k for k, letter in enumerate(value) if letter.isdigit()]
        digit = dice.choice(digits)
        return [value[:digit] + str(dice.randrange(10)) + value[digit + 1:], dice.choice("FBWx") + value[1:], value + " ",
                " ".join(dice.sample(words, len(words))), " ".join(words[1:]), " ".join([*words, words[-1]]), 3]
    if isinstance(value, list):
        taken = dice.randrange(len(value)) if value else 0
        return [value[:taken] + value[taken + 1:], [*value, *value[-1:]], value[::-1], [0], [dice.randrange(40)], None]
    if isinstance(value, dict):
        return [{key: of for key, of in value.items() if key != gone} for gone in value] + [None]
    if value is None:
        return [1, 0, -1]
    return [value + 1, value - 1, value * 2, value + dice.randrange(1, 9), value / 2, -value, float("nan"), str(value), None, True]


def tamper(certificate, path, to):
    changed = copy.deepcopy(certificate)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return changed


def is_rejected(checker, changed, of):
    """Whether a changed certificate is rejected; asserts that it is right where it is not, or says what is wrong with it."""
    try:
        _, value, _ = checker.shown_by(changed)
        # The orders of the certificate run, so that nothing shows more than they take.
        if changed["problem"] == of["problem"]:
            reached = of[changed["objective"]]
            assert value <= reached * (1 + 1e-9), (float(value), reached, changed)
        checker.check(changed)
    except checker.Wrong as why:
        assert str(why), changed
        return True
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return True
    return False


def tamper_everywhere(checker, certificates, dice):
    """By field, how many changes are rejected and how many are right all the same."""
    counts = collections.defaultdict(collections.Counter)
    for certificate in certificates:
        places = collections.defaultdict(list)
        for path in fields(certificate):
            if path:
                places[name_of(path)].append(path)
        for name, paths in places.items():
            for _ in range(min(CHANGES, 3 * len(paths))):
                path = dice.choice(paths)
                value = certificate
                for key in path:
                    value = value[key]
                for to in changes_of(value, dice, path):
                    if to == value and type(to) is type(value):
                        continue
                    counts[name]["rejected" if is_rejected(checker, tamper(certificate, path, to), certificate) else "right"] += 1
    return counts


def is_quick(certificate):
    """Narrowing is done anew for each change."""
    problem = certificate["problem"]
    return certificate["argument"]["by"] != "narrowing" or problem["ranks"] * problem["chunks"] * problem["microbatches"] <= 20


def prove_by_program(source, folder, certificate):
    """The program says the same, with its exit codes."""
    program = [sys.executable, "-B", str(source / "tools" / "check_bound.py")]
    file = folder / "one.json"

    def run(text, *flags):
        file.write_text(text)
        return subprocess.run([*program, *flags, str(file)], capture_output=True, text=True)

    right = run(json.dumps(certificate), "--explain")
    assert right.returncode == 0 and right.stdout.startswith("fact 0: F0.0 begins at 0 at least, since"), right
    assert "\nright: rank 0 runs F0.0 " in right.stdout and "\nright: no makespan is below 27; that of the orders is 27, " in right.stdout, right
    wrong = run(json.dumps({**certificate, "bound": 27.5}))
    assert wrong.returncode == 1 and wrong.stdout == "wrong: bound: the argument shows 27, not 27.5\n", wrong
    for text in ("", "[]", "{}", '{"schema": 1, "objective": "makespan", "problem": 1}'):
        assert run(text).returncode == 1, text
    for changed in ({"exhaustive": None}, {"bound": 10**400}):
        none = run(json.dumps({**certificate, **changed}))
        assert none.returncode == 1 and none.stdout.startswith("wrong: ") and not none.stderr, (changed, none)
    assert subprocess.run(program, capture_output=True).returncode == 2
    missing = subprocess.run([*program, str(folder / "none.json")], capture_output=True, text=True)
    assert missing.returncode == 2 and "none.json" in missing.stderr and "Traceback" not in missing.stderr, missing


def prove_that_gifts_are_seen(checker, certificate):
    """A weight gradient that gives up more than its stage takes, what is made again included, makes room for others."""
    changed = copy.deepcopy(certificate)
    changed["facts"], changed["argument"] = [], {"by": "memory", "from": []}
    before = float(checker.shown_by(changed)[1])
    assert before <= certificate["span"]
    for stage in changed["problem"]["stages"]:
        assert stage["remakes"] == 0.5, stage
        stage["holds"][2] = -3
    assert checker.shown_by(changed)[1] < before, "a gift is taken for none"


def prove_that_rounded_gifts_add_up(checker):
    """Room for two forwards but for two billionths, and microbatches that give up half a billionth more than they took: the last
    three of four share the memory of two. Were there always room for one alone, nothing would be below 54."""
    stages = [{"takes": [5, 1, 1], "holds": [1, 0, -1.0000000005], "lags": lags} for lags in ([0, 1], [1, 0])]
    problem = {"placement": "loop", "ranks": 2, "chunks": 1, "microbatches": 4, "memory_limit": 2 - 2.4e-9, "stages": stages}
    orders = ["F0 B0 W0 F0 F0 B0 W0 F0 B0 W0 B0 W0", "F1 B1 W1 F1 B1 F1 B1 W1 F1 B1 W1 W1"]
    for by in ("L1", "L2", "memory"):
        facts, argument = [{"head": "F0.0", "by": "start", "from": []}], {"by": by, "from": [0] if by == "memory" else []}
        certificate = {"schema": 1, "objective": "makespan", "bound": 20, "rank": 0, "problem": problem, "facts": facts, "argument": argument,
                       "orders": orders, "makespan": 45, "span": 45}
        checker.check(certificate)
        shown = checker.shown_by(certificate)[1]
        assert shown <= 45, (by, float(shown))


def prove_that_work_begins_somewhere(checker, certificate):
    """Nothing comes before a rank's first task, so that its rank's work says nothing of when that begins."""
    facts = [{"head": "F0.0", "by": "start", "from": []}]
    while len(facts) < 61:  # each time F0.0 would begin by an F0 later
        facts += [{"head": "F0.1", "by": "wait", "from": [len(facts) - 1]}, {"head": "F0.0", "by": "work", "from": [len(facts)]}]
    argument = {"by": "machine", "tasks": [{"series": "F0", "first": 0, "last": 0, "head": 60, "tail": 61}]}
    try:
        _, shown, _ = checker.shown_by({**certificate, "facts": [*facts, {"tail": "F0.0", "by": "end", "from": []}], "argument": argument})
    except checker.Wrong as wrong:
        assert str(wrong) == "fact 2: its rank runs nothing before it", wrong
    else:
        raise AssertionError(f"nothing is below {float(shown)}, but the orders take {certificate['makespan']}")


def main():
    capo, source = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    checker, dice = load(source), random.Random(34)
    certificates, used = [], set()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        fixed = [certificate_of(capo, flags.split(), folder) for flags in CASES]
        prove_by_program(source, folder, fixed[0])
        prove_that_gifts_are_seen(checker, fixed[CASES.index(RECOMPUTED)])
        prove_that_rounded_gifts_add_up(checker)
        prove_that_work_begins_somewhere(checker, fixed[0])
        assert fixed[CASES.index(BY_L3)]["argument"]["by"] == "memory", fixed[CASES.index(BY_L3)]["argument"]
        certificates = list(fixed)
        for flags, row in optima(source, dice):
            certificates.append(certificate_of(capo, flags, folder))
            assert certificates[-1]["bound"] <= row[row["objective"]] * (1 + 1e-9), (flags, row)
        certificates += filter(None, (certificate_of(capo, by_chance(dice), folder) for _ in range(BY_CHANCE)))
    schema = jsonschema.Draft202012Validator(json.loads((source / "docs" / "schema" / "bound.schema.json").read_text()))
    for certificate in certificates:
        schema.validate(certificate)
        checker.check(certificate)
        shown = float(checker.shown_by(certificate)[1])  # may be more than capo's bound
        more = {**certificate, "bound": shown * 1.001}
        assert shown == 0 or is_rejected(checker, more, certificate), certificate["argument"]
        used |= {f"{'head' if 'head' in fact else 'tail'} {fact['by']}" for fact in certificate["facts"]}
    assert used == STEPS, used ^ STEPS
    arguments = {certificate["argument"]["by"] for certificate in certificates}
    assert {"machine", "narrowing"} <= arguments and arguments <= set(checker.ARGUMENTS), arguments
    quick = [certificate for certificate in certificates if is_quick(certificate)]
    fixed = [certificate for certificate in quick if certificate in fixed]
    counts = tamper_everywhere(checker, fixed + dice.sample(quick[len(fixed):], 12), dice)
    for name, of in counts.items():
        assert of["rejected"] > 0, (name, of)
    rejected, right = (sum(of[key] for of in counts.values()) for key in ("rejected", "right"))
    print(f"{len(certificates)} certificates are right; {rejected} changes of {len(counts)} fields are rejected, {right} show what is true")


if __name__ == "__main__":
    main()
