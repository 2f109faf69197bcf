"""Random orders of two to four ranks: the certificate of each that capo accepts is accepted by tools/check_certificate.py,
and memory is shared in at least half of them.

    certificate_orders.py CAPO SOURCE_DIR [ORDERS]      10,000 accepted orders if no number is given; ./dev certificates

certificate_test.py takes some of them at every run of the tests. All are drawn from one seed.
"""

import collections
import importlib.util
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ORDERS = 10_000
STAGES_OF = {  # by placement: the rank and chunk of each stage
    "chain": lambda ranks: [(rank, 1) for rank in range(ranks)],
    "loop": lambda ranks: [(rank, chunk) for chunk in (1, 2) for rank in range(ranks)],
    "v": lambda ranks: [(rank, 1) for rank in range(ranks)] + [(rank, 2) for rank in reversed(range(ranks))],
}


def load_checker(source):
    spec = importlib.util.spec_from_file_location("check_certificate", source / "tools" / "check_certificate.py")
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    return checker


def possible(stages, microbatches, delays, done):
    """The actions that may come next on any rank."""
    for (stage, at), m in itertools.product(enumerate(stages), range(microbatches)):
        fed = stage == 0 or ("F", stage - 1, m) in done
        answered = stage + 1 == len(stages) or ("B", stage + 1, m) in done
        ready = {"F": fed, "B": answered and ("F", stage, m) in done, "W": at in delays and ("B", stage, m) in done}
        yield from ((kind, stage, m) for kind, is_ready in ready.items() if is_ready and (kind, stage, m) not in done)


def drawn(dice):
    """An order that its ranks can run together, action by action, and arguments of `capo check`."""
    ranks, microbatches, placement = dice.randint(2, 4), dice.randint(1, 5), dice.choice(sorted(STAGES_OF))
    stages = STAGES_OF[placement](ranks)
    delays = {at for at in stages if dice.random() < 0.4}
    done, orders = set(), [[] for _ in range(ranks)]
    while able := list(possible(stages, microbatches, delays, done)):
        kind, stage, m = dice.choice(able)
        done.add((kind, stage, m))
        rank, chunk = stages[stage]
        orders[rank].append(f"{kind}{chunk}.{m}")
    layers = "".join(f"rank {rank} layers {dice.randint(1, 2)}\n" for rank in range(ranks) if dice.random() < 0.3)
    lines = "".join(f"rank {rank}: {' '.join(order)}\n" for rank, order in enumerate(orders))
    arguments = ["--comm", dice.choice(["per-rank", "per-pair", "per-edge"]), "--transfers", dice.choice(["rendezvous", "buffered"])]
    if dice.random() < 0.3:
        arguments += ["--weight-stream"]
    if dice.random() < 0.3:
        arguments += ["--alias", dice.choice(["none", "input", "grad-output", "input,grad-output"])]
    return f"capo 1\nplacement {placement}\n{layers}{lines}", arguments


def judge(capo, checker, number, dice):
    """Counts of orders by what became of them, once so many are accepted. Fails where a certificate is not."""
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        order, plan = pathlib.Path(name) / "drawn.order", pathlib.Path(name) / "plan.json"
        while counts["accepted"] < number:
            text, arguments = drawn(dice)
            order.write_text(text)
            command = [capo, "check", str(order), *arguments, "--plan", "safe", "--plan-out", str(plan)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode in (0, 1), (arguments, text, done.stderr)
            if done.returncode == 1:
                counts["rejected"] += 1
                continue
            certificate = json.loads(plan.read_text())
            try:
                checker.check(certificate)
            except checker.Wrong as why:
                raise AssertionError(f"{why}\n{arguments}\n{text}") from None
            counts["accepted"] += 1
            counts["sharing"] += bool(certificate["shared"])
    assert counts["sharing"] * 2 >= number, counts
    return counts


def main():
    capo, source = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    number = int(sys.argv[3]) if len(sys.argv) > 3 else ORDERS
    counts = judge(capo, load_checker(source), number, random.Random(29))
    print(f"the certificates of {counts['accepted']} accepted orders hold, {counts['sharing']} of them with shared memory; "
          f"{counts['rejected']} orders were rejected")


if __name__ == "__main__":
    main()
