"""Random orders of two to four ranks: the certificate of each that capo accepts is accepted by tools/check_certificate.py,
and memory is shared in at least half of them. So is the circle of each that capo rejects for a deadlock.

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


def with_transfers(orders, stages, dice):
    """The orders with transfers, each send a little behind what makes it and each receive a little before its reader."""
    orders = [list(order) for order in orders]
    for kind, way in (("F", 1), ("B", -1)):
        for stage, (rank, chunk) in enumerate(stages):
            to = stages[stage + way] if 0 <= stage + way < len(stages) else (rank, 0)
            for made in [action for action in orders[rank] if action.startswith(f"{kind}{chunk}.") and to[0] != rank]:
                m = made.partition(".")[2]
                orders[rank].insert(orders[rank].index(made) + dice.randint(1, 4), f"send-{made}")
                reader = orders[to[0]].index(f"{kind}{to[1]}.{m}")
                orders[to[0]].insert(max(reader - dice.randint(0, 3), 0), f"recv-{kind}{to[1]}.{m}")
    return orders


def drawn(dice, transfers=False):
    """An order that its ranks can run together, action by action, and arguments of `capo check`. Where it has
    transfers they may wait for each other in a circle."""
    ranks, microbatches, placement = dice.randint(2, 4), dice.randint(1, 5), dice.choice(sorted(STAGES_OF))
    stages = STAGES_OF[placement](ranks)
    delays = {at for at in stages if dice.random() < 0.4}
    done, orders = set(), [[] for _ in range(ranks)]
    while able := list(possible(stages, microbatches, delays, done)):
        kind, stage, m = dice.choice(able)
        done.add((kind, stage, m))
        rank, chunk = stages[stage]
        orders[rank].append(f"{kind}{chunk}.{m}")
    if transfers:
        orders = with_transfers(orders, stages, dice)
    layers = "".join(f"rank {rank} layers {dice.randint(1, 2)}\n" for rank in range(ranks) if dice.random() < 0.3)
    lines = "".join(f"rank {rank}: {' '.join(order)}\n" for rank, order in enumerate(orders))
    arguments = ["--comm", dice.choice(["per-rank", "per-pair", "per-edge", "per-direction", "lazy-hybrid"]), "--transfers", dice.choice(["rendezvous", "buffered"])]
    if dice.random() < 0.3:
        arguments += ["--weight-stream"]
    if dice.random() < 0.3:
        arguments += ["--alias", dice.choice(["none", "input", "grad-output", "input,grad-output"])]
    return f"capo 1\nplacement {placement}\n{layers}{lines}", arguments


def certified(checker, plan, check, order):
    """The certificate in a file; fails where the program that checks it says that it is wrong."""
    certificate = json.loads(plan.read_text())
    try:
        check(certificate)
    except checker.Wrong as why:
        raise AssertionError(f"{why}\n{order}") from None
    return certificate


def judge(capo, checker, number, dice, least_circles=0):
    """Draws until so many orders are accepted and so many have circles: counts of what became of them, and the circles."""
    counts, circles = collections.Counter(), []
    with tempfile.TemporaryDirectory() as name:
        order, plan = pathlib.Path(name) / "drawn.order", pathlib.Path(name) / "plan.json"
        while counts["accepted"] < number or len(circles) < least_circles:
            text, arguments = drawn(dice, transfers=counts["accepted"] >= number)
            plan.unlink(missing_ok=True)
            order.write_text(text)
            command = [capo, "check", str(order), *arguments, "--plan", "safe", "--plan-out", str(plan)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode in (0, 1), (arguments, text, done.stderr)
            if done.returncode == 1:
                counts["rejected"] += 1
                if plan.exists():
                    circles.append(certified(checker, plan, checker.check_circle, (arguments, text)))
                continue
            certificate = certified(checker, plan, checker.check, (arguments, text))
            counts["accepted"] += 1
            counts["sharing"] += bool(certificate["shared"])
    assert counts["sharing"] * 2 >= number, counts
    return counts, circles


def main():
    capo, source = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    number = int(sys.argv[3]) if len(sys.argv) > 3 else ORDERS
    counts, circles = judge(capo, load_checker(source), number, random.Random(29))
    print(f"the certificates of {counts['accepted']} accepted orders hold, {counts['sharing']} of them with shared memory; "
          f"{counts['rejected']} orders were rejected, {len(circles)} of them with a circle that holds")


if __name__ == "__main__":
    main()
