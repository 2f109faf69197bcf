"""Certificates of plans, capo's own and frameworks': tools/check_certificate.py accepts that of every accepted case of every
corpus and rejects what was tampered with, and the schema holds for them. `capo check --plan-in` accepts each of them as well, and
of plans whose buffers were moved those in which every taker waits for all uses of what it takes over, as the graph has it.

Run by ctest: certificate_test.py CAPO SOURCE_DIR. Prints the counts of each kind of tampering; those that leave a
certificate valid are counted apart. A kind that is never rejected fails.
"""

import collections
import copy
import itertools
import json
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

import certificate_orders
import jsonschema

# Certificates of which one buffer is moved before capo reads them back.
MOVED = 120

# Plans of frameworks; one that is accepted with a warning has no certificate.
FRAMEWORKS = ("te", "mcore-local")

# Random orders whose certificates are checked; ./dev certificates takes 10,000.
DRAWN = 150

# Circles of random orders that each kind of tampering is applied to; some of it changes nothing.
CIRCLES_DRAWN = 130
LEAST_TAMPERED = 100

# Schedules whose ranks hand memory on while transfers are under way.
GENERATED = [("1f1b", 2, 4), ("1f1b", 4, 8), ("gpipe", 3, 4), ("zb-h1", 4, 8), ("interleaved", 2, 4), ("zbv", 2, 5)]


def parameters_between(microbatches):
    """Ranks that gather parameters before each backward: what one of them has received the other knows by that alone."""
    forwards = " ".join(f"F1.{m}" for m in range(microbatches))
    backwards = " reshard1 unshard1 ".join(f"B1.{m}" for m in range(microbatches))
    return "".join(f"rank {rank}: unshard1 {forwards} {backwards} reshard1\n" for rank in (0, 1))


SIZES = {"schema": 1, "layers": [["narrow"], ["wide"]], "modules": {
    "narrow": {"kind": "linear", "dtype": "bf16", "shape": {"tokens": 64, "hidden": 64, "ffn": 64}},
    "wide": {"kind": "linear", "dtype": "bf16", "shape": {"tokens": 64, "hidden": 96, "ffn": 64}}}}
GATHERED = {"schema": 1, "groups": [{"name": "fsdp", "members": [0, 1], "actions": ["unshard"]}]}

# Orders with what the corpus lacks, each with its arguments and a model: name, text, arguments, model.
WRITTEN = [
    ("gradients-handed-on.order", "capo 1\nrank 0 model-chunks 1,1\nrank 0: F1 F2 F1 F2 F1 F2 B2 B1 B2 B1 B2 B1\n", [], None),
    ("gradient-handed-on-last.order", "capo 1\nrank 0 model-chunks 3\nrank 0: F1 F1 B1 B1 F2 B2 F3 B3 F3 F2 B3 B2\n", [], None),
    ("chunks-without-layers.order", "capo 1\nplacement loop\nrank 0 layers 0,1\nrank 1 layers 1,0\n"
     "rank 0: F1 F1 F2 F2 B2 B2 B1 B1\nrank 1: F1 F1 F2 F2 B2 B2 B1 B1\n", [], None),
    ("buffers-of-two-sizes.te", "[1, 2, 1, 2, -2, -1, 1, 2, -2, -1, -2, -1]\n", [], SIZES),
    ("scratch-of-weight-gradients.te", "[1, 1, -1, 1, -1, -1.5, -1.5, -1, -1.5]\n", ["--alias", "none", "--weight-stream"], None),
    ("ordered-by-collectives.order", "capo 1\nplacement chain\n" + parameters_between(4), [], GATHERED),
]


def any_of(dice, items):
    return dice.choice(items) if items else None


def later_of_a_pair(certificate, dice):
    pair = any_of(dice, certificate["shared"])
    return pair and certificate["buffers"][pair["after"]]


def drop_pair(c, dice):
    if c["shared"]:
        c["shared"].pop(dice.randrange(len(c["shared"])))


def swap_pair(c, dice):
    pair = any_of(dice, c["shared"])
    if pair:
        pair["before"], pair["after"] = pair["after"], pair["before"]


def swap_order(c, dice):
    edge = any_of(dice, c["edges"])
    if edge:
        a, b = (c["order"].index(v) for v in edge)
        c["order"][a], c["order"][b] = c["order"][b], c["order"][a]


def repeat_in_order(c, dice):
    if c["vertices"] > 1:
        c["order"][0] = c["order"][-1]


def drop_vertex(c, dice):
    if c["order"]:
        c["order"].pop(dice.randrange(len(c["order"])))


def drop_chain_edge(c, dice):
    stream = any_of(dice, [s for s in c["streams"] if len(s) > 1])
    if stream:
        k = dice.randrange(1, len(stream))
        c["edges"] = [e for e in c["edges"] if e != stream[k - 1:k + 1]]


def close_circle(c, dice):
    edge = any_of(dice, c["edges"])
    if edge:
        c["edges"].append(edge[::-1])


def move_buffer(c, dice):
    """Onto another buffer of its region."""
    buffer = any_of(dice, c["buffers"])
    other = buffer and any_of(dice, [b for b in c["buffers"]
                                     if b["rank"] == buffer["rank"] and b["region"] == buffer["region"] and b["offset"] != buffer["offset"]])
    if other:
        buffer["offset"] = other["offset"]


def enlarge_buffer(c, dice):
    buffer = any_of(dice, c["buffers"])
    if buffer:
        buffer["bytes"] += 1


def empty_buffer(c, dice):
    buffer = any_of(dice, c["buffers"])
    if buffer:
        buffer["bytes"] = 0


def use_earlier(c, dice):
    """The one that takes memory over is written at the very beginning."""
    buffer = later_of_a_pair(c, dice)
    if buffer:
        first = c["order"][0]
        buffer["uses"].insert(0, [first, 10**9, 0, [first]])


def use_later(c, dice):
    """The one that loses memory is read once more, at the very end."""
    pair = any_of(dice, c["shared"])
    if pair:
        last = c["order"][-1]
        c["buffers"][pair["before"]]["uses"].append([last, 10**9, 0, [last]])


def over_early(c, dice):
    """A use is over with a vertex that does not follow it."""
    use = any_of(dice, [u for b in c["buffers"] for u in b["uses"]])
    if use:
        use[3] = [c["order"][0]]


def never_over(c, dice):
    use = any_of(dice, [u for b in c["buffers"] for u in b["uses"]])
    if use:
        use[3] = []


def cut_path(c, dice):
    holder = any_of(dice, [p for p in c["shared"] + c["buffers"] if p["paths"]])
    if holder:
        holder["paths"].pop()


def shorten_path(c, dice):
    path = any_of(dice, [p for of in c["shared"] + c["buffers"] for p in of["paths"] if len(p) > 2])
    if path:
        path.pop(dice.randrange(1, len(path) - 1))


def understate(c, dice):
    region = any_of(dice, sorted(c["bytes"]))
    if region:
        c["bytes"][region] -= 1


def reorder_buffers(c, dice):
    if len(c["buffers"]) > 1:
        c["buffers"].reverse()


def move_work(c, dice):
    use = any_of(dice, [u for b in c["buffers"] for u in b["uses"]])
    if use and c["vertices"] > 1:
        use[0] = c["order"][0] if use[0] != c["order"][0] else c["order"][-1]


def on_circle(c, dice):
    """The place of a vertex of the circle, and the edge to the next one."""
    at = dice.randrange(len(c["circle"]))
    return at, [c["circle"][at], c["circle"][(at + 1) % len(c["circle"])]]


def drop_wait(c, dice):
    edge = on_circle(c, dice)[1]
    c["edges"] = [e for e in c["edges"] if e != edge]


def turn_wait(c, dice):
    edge = on_circle(c, dice)[1]
    c["edges"] = [e[::-1] if e == edge else e for e in c["edges"]]


def skip_vertex(c, dice):
    c["circle"].pop(on_circle(c, dice)[0])


def repeat_vertex(c, dice):
    at, edge = on_circle(c, dice)
    c["circle"].insert(at, edge[0])


def go_round_twice(c, _):
    c["circle"] *= 2


def turn_circle(c, _):
    c["circle"].reverse()


def other_vertex(c, dice):
    c["circle"][on_circle(c, dice)[0]] = dice.randrange(c["vertices"])


def no_circle(c, _):
    c["circle"] = []


CIRCLES = [drop_wait, turn_wait, skip_vertex, repeat_vertex, go_round_twice, turn_circle, other_vertex, no_circle]
TAMPERINGS = [drop_pair, swap_pair, swap_order, repeat_in_order, drop_vertex, drop_chain_edge, close_circle, move_buffer, enlarge_buffer,
              empty_buffer, use_earlier, use_later, over_early, never_over, cut_path, shorten_path, understate, reorder_buffers, move_work]


def cases(source):
    """Arguments of `capo check` for each order of every corpus that states no replay and no budget; the plan is capo's."""
    for case in sorted((source / "tests" / "corpus").rglob("*")):
        in_threads = "threads" in case.parts  # whose JSON says what each case is
        if case.suffix not in (".order", ".csv", ".te", *([] if in_threads else [".json"])):
            continue
        given = case.with_suffix(".args")
        if in_threads and not given.exists():
            given = case.parent / "args"
        arguments = shlex.split(given.read_text()) if given.exists() else []
        if {"--replay", "--capture", "--budget"} & set(arguments):
            continue
        if "--plan" in arguments:
            at = arguments.index("--plan")
            del arguments[at:at + 2]
        if "--model" in arguments:
            arguments.append("--override")
        yield case, arguments


def certificate_of(capo, case, arguments, folder, plan="safe"):
    """None if the order is neither accepted under the plan nor rejected for a deadlock, or accepted with a warning only."""
    out = folder / "plan.json"
    out.unlink(missing_ok=True)
    command = [capo, "check", case.name, *arguments, "--plan", plan, "--plan-out", str(out)]
    done = subprocess.run(command, cwd=case.parent, capture_output=True, text=True)
    certificate = json.loads(out.read_text()) if out.exists() else None
    warned = plan != "safe" and "is not written" in done.stderr
    assert (done.returncode == 0) == (warned or (certificate is not None and "order" in certificate)), command
    assert "error[T09]" not in done.stdout or "circle" in certificate, command
    return certificate


def generated(capo, folder):
    for name, ranks, microbatches in GENERATED:
        for form in ("order", "csv"):
            file = folder / f"{name}-{ranks}.{form}"
            done = subprocess.run([capo, "generate", name, "--ranks", str(ranks), "--microbatches", str(microbatches), "--format", form,
                                   "-o", str(file)], capture_output=True, text=True)
            if done.returncode == 0:
                yield file, []


def deferred(source, folder):
    """Tables in which torch 2.15 defers receives, many of which never end where a rank has one communicator."""
    for row in json.loads((source / "tests" / "data" / "torch215_lowered.json").read_text())["rows"]:
        lines = row["lowered"]["defer_pp_recv"]
        if isinstance(lines, list):
            file = folder / f"{row['id']}.csv"
            file.write_text("".join(row["lines"][line] + "\n" for line in lines))
            yield file, ["--comm", "per-rank"]


def written(folder):
    for name, text, arguments, model in WRITTEN:
        file = folder / name
        file.write_text(text)
        if model:
            file.with_suffix(".model").write_text(json.dumps(model))
            arguments = [*arguments, "--model", file.with_suffix(".model").name]
        yield file, arguments


def verdict(checker, certificate):
    try:
        checker.check_circle(certificate) if "circle" in certificate else checker.check(certificate)
    except checker.Wrong as why:
        return str(why)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as why:
        return repr(why)
    return None


def reachable(certificate):
    """By vertex: the vertices that wait for it, itself left out."""
    after = collections.defaultdict(set)
    edges = collections.defaultdict(list)
    for a, b in certificate["edges"]:
        edges[a].append(b)
    for vertex in reversed(certificate["order"]):
        for following in edges[vertex]:
            after[vertex] |= after[following] | {following}
    return after


def is_over(use, first, after):
    vertex, work, layer, over = use
    return any(first[0] in after[v] for v in over) or (work == first[1] and layer < first[2])


def is_over_but_for_one_work(use, first, after):
    """What one piece of work reads before it writes the certificate does not tell."""
    return use[1] == first[1] or is_over(use, first, after)


def is_sound(certificate, over):
    """Whether of each two buffers that overlap the one is over before the other begins."""
    after = reachable(certificate)
    for a, b in itertools.combinations(certificate["buffers"], 2):
        if (a["rank"], a["region"]) != (b["rank"], b["region"]):
            continue
        if a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]:
            continue
        if not any(all(over(use, second["uses"][0], after) for use in first["uses"]) for first, second in ((a, b), (b, a))):
            return False
    return True


def judged(capo, case, arguments, certificate, folder):
    """The rules of capo's errors about memory where the plan is given; who captures, and so G12, is not known then."""
    given = folder / "given.plan"
    given.write_text(json.dumps(certificate))
    # Certificates are of the defaults, which only orders whose ranks communicate may assume.
    for assumed in (["--assume", "default"], []):
        command = [capo, "check", case.name, *arguments, *assumed, "--plan-in", str(given), "--format", "json"]
        done = subprocess.run(command, cwd=case.parent, capture_output=True, text=True)
        if done.returncode != 2:
            break
    assert done.stdout, (command, done.stderr)
    report = json.loads(done.stdout)
    assert report["verdict"] != "no-verdict", (command, report)
    return {d["rule"] for d in report["diagnostics"] if d["severity"] == "error" and d["family"] in ("buffers", "streams")}


def judge_moved(capo, read, folder, dice):
    """Holds capo's verdict on moved buffers against the certificate's own graph. Returns how many are right and wrong."""
    counts = collections.Counter()
    for case, arguments, of in dice.sample(read, MOVED):
        certificate = copy.deepcopy(of)
        move_buffer(certificate, dice)
        rules = judged(capo, case, arguments, certificate, folder)
        assert rules <= {"B01", "B02", "B03", "B04", "E01"}, (case, rules)
        assert not (rules and is_sound(certificate, is_over)), (case, arguments, rules)
        assert rules or is_sound(certificate, is_over_but_for_one_work), (case, arguments)
        counts[bool(rules)] += 1
    return counts[False], counts[True]


def tamper_with(certificates, tamper, checker, dice):
    counts = collections.Counter()
    for of in certificates:
        certificate = copy.deepcopy(of)
        tamper(certificate, dice)
        if certificate != of:
            counts["rejected" if verdict(checker, certificate) else "valid"] += 1
    return counts


def prove_that_a_missing_file_is_named(source, folder):
    program = [sys.executable, "-B", str(source / "tools" / "check_certificate.py"), str(folder / "none.json")]
    missing = subprocess.run(program, capture_output=True, text=True)
    assert missing.returncode == 2 and "none.json" in missing.stderr and "Traceback" not in missing.stderr, missing


def main():
    capo, source = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    checker = certificate_orders.load_checker(source)
    schema = json.loads((source / "docs" / "schema" / "certificate.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    given = jsonschema.Draft202012Validator(json.loads((source / "docs" / "schema" / "given-plan.schema.json").read_text()))
    certificates, circles, of_frameworks = [], [], []
    dice = random.Random(29)
    read = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prove_that_a_missing_file_is_named(source, folder)
        for case, arguments in [*cases(source), *generated(capo, folder), *written(folder), *deferred(source, folder)]:
            certificate = certificate_of(capo, case, arguments, folder)
            if certificate is None:
                assert case.name not in (name for name, *_ in WRITTEN), case
                continue
            why = verdict(checker, certificate)
            assert why is None, f"{case}: {why}"
            validator.validate(certificate)
            if "circle" in certificate:
                circles.append(certificate)
                continue
            given.validate(certificate)
            certificates.append(certificate)
            assert judged(capo, case, arguments, certificate, folder) == set(), (case, arguments)
            read.append((case, arguments, certificate))
            for plan in FRAMEWORKS:
                other = certificate_of(capo, case, arguments, folder, plan)
                if other is None or "circle" in other:
                    continue
                assert other["plan"] == plan
                why = verdict(checker, other)
                assert why is None, f"{case} under plan {plan}: {why}"
                validator.validate(other)
                given.validate(other)
                assert judged(capo, case, arguments, other, folder) == set(), (case, arguments, plan)
                of_frameworks.append(other)
        sound, unsound = judge_moved(capo, read, folder, dice)
        print(f"{len(read)} certificates are accepted as given plans; of plans with a moved buffer {sound} are, and {unsound} are not")
        assert sound >= 1 and unsound >= MOVED // 2
    counts, drawn_circles = certificate_orders.judge(capo, checker, DRAWN, dice, CIRCLES_DRAWN)
    print(f"{counts['accepted']} certificates of random orders hold, {counts['sharing']} of them with shared memory")
    sharing = [c for c in certificates if c["shared"]]
    print(f"{len(certificates)} certificates, {len(sharing)} with shared memory")
    for plan in FRAMEWORKS:
        held = [c for c in of_frameworks if c["plan"] == plan]
        print(f"{len(held)} certificates of plan {plan} hold, {sum(bool(c['shared']) for c in held)} of them with shared memory")
        assert sum(bool(c["shared"]) for c in held) >= LEAST_TAMPERED, plan
    assert len(sharing) >= 100
    print(f"{len(circles)} circles of orders that never end, and {len(drawn_circles)} of random ones")
    assert len(circles) >= 20
    for certificate in drawn_circles:
        validator.validate(certificate)
    for tampers, tampered in ((TAMPERINGS, certificates), (TAMPERINGS, of_frameworks), (CIRCLES, circles), (CIRCLES, drawn_circles)):
        for tamper in tampers:
            counts = tamper_with(tampered, tamper, checker, dice)
            print(f"{tamper.__name__:16} {counts['rejected']:4} rejected, {counts['valid']:4} left valid")
            assert counts["rejected"] >= 1, tamper.__name__
            assert tampered is circles or sum(counts.values()) >= LEAST_TAMPERED, tamper.__name__
    return 0


if __name__ == "__main__":
    sys.exit(main())
