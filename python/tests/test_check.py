"""capo.check: the fields of a report, the words of the command line, and errors of arguments."""

import json
import sys
import threading
import time

import capo
import pytest

SLIP = [1, 2, -2, -2, -1, -1.5, 1, 2, -2, -2.5, -1, -1.5]


def test_accepted():
    report = capo.check([1, 1, -1, -1])
    assert report.verdict == "accepted" and report.accepted
    assert report.diagnostics == [] and report.victims is None and report.slots is None
    report.raise_for_errors()


def test_rejected_with_its_finding():
    report = capo.check([1, 2, -1, -1], profiles=("sound", "te"))
    assert report.verdict == "rejected" and not report.accepted
    (finding,) = report.diagnostics
    assert finding.rule == "S15" and finding.severity == "error"
    assert finding.message.startswith("`-1` at index 3 is a backward of chunk 1 without a forward")
    assert finding.help == "chunk 2 lacks a backward; is `-2` meant?"
    (span, *_) = finding.spans
    assert (span.source, span.line, span.column, span.length) == ("<order>", 1, 12, 2)
    assert list(report.profiles) == ["sound", "te"]
    assert report.profiles["te"].accepts is True and report.profiles["te"].error_kind is None
    assert report.profiles["te"].disagreement == "accepted there and wrong"
    assert report.profiles["sound"].accepts is False


def test_the_error_prints_the_report():
    report = capo.check([1, 2, -1, -1])
    with pytest.raises(capo.OrderError) as raised:
        report.raise_for_errors()
    assert str(raised.value) + "\n" == str(report)
    assert raised.value.report is report
    assert str(report).startswith("error[S15]: `-1` at index 3")


def test_a_slip_is_called_by_its_name():
    report = capo.check(SLIP)
    assert "error[S16]: `-2` at index 3 is probably `-2.5`" in str(report)
    assert report.diagnostics[0].edits[0][1] == "-2.5"
    assert capo.check([-2.5 if at == 3 else entry for at, entry in enumerate(SLIP)]).accepted


def test_json_is_the_report_for_programs():
    told = json.loads(capo.check([1, 2, -1, -1], profiles=("te",)).to_json())
    assert told["schema"] == 1 and told["verdict"] == "rejected" and told["profiles"]["te"]["accepts"]


def test_a_text_that_is_no_order_has_no_verdict():
    report = capo.check("[1, x]", profiles=("sound", "te"))
    assert report.verdict == "no-verdict" and report.diagnostics[0].rule == "I01"
    assert report.profiles["te"].accepts is None
    with pytest.raises(capo.OrderError, match="I01"):
        report.raise_for_errors()


def test_layers_are_the_profiles_own_argument():
    order = [1, 1, -1, -1.5, -1, -1.5]
    kinds = [
        capo.check(order, num_layers_per_chunk=layers, profiles=["te"]).profiles["te"].error_kind
        for layers in (None, 1, [1])
    ]
    assert kinds == ["TE.ValueError", "py.TypeError", None]


def test_delayed_chunks():
    assert capo.check([1, -1]).accepted
    assert not capo.check([1, -1], delayed="all").accepted
    assert not capo.check([1, -1], delayed=[1]).accepted
    assert not capo.check([1, -1, -1.5], delayed=[]).accepted


def test_a_plan_has_victims_and_slots():
    report = capo.check(
        [2, -2, 1, 1, -2.5, -1, 2, -1.5, -1, -1.5, -2, -2.5], plan="te", modules="linear"
    )
    assert report.slots == 2
    assert set(report.victims) == {"static_input", "grad_output"}
    assert isinstance(report.hazards, list)


def test_ranks_are_judged_under_each_environment():
    ranks = [[1, 1, -1, -1], [1, -1, 1, -1]]
    assert capo.check(ranks, topology="chain").accepted
    assert capo.check(ranks, topology=[[0], [1]], comm="per-edge").accepted
    assert "2 ranks" in str(capo.check(ranks))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"plan": "tee"}, "plan: 'tee' is none; did you mean `te`?"),
        ({"topology": "chian"}, "topology: 'chian' is none; did you mean `chain`?"),
        ({"topology": [[0, 0]]}, "topology: "),
        ({"comm": "per-rank"}, "comm: the chunks are not wired"),
        ({"modules": "liner"}, "modules: 'liner' is none; did you mean `linear`?"),
        ({"modules": ["linear"] * 3}, "modules: names 3 kinds, but rank 0 has 1 chunk"),
        ({"profiles": ["tee"]}, "profiles: no profile `tee`"),
        ({"delayed": "some"}, "delayed: 'some' is neither"),
        ({"delayed": [0]}, "delayed: 0 is no whole number from 1"),
    ],
)
def test_an_argument_that_does_not_fit(arguments, words):
    with pytest.raises(ValueError) as raised:
        capo.check([1, -1], **arguments)
    assert words in str(raised.value)


def test_modules_of_a_dict_are_the_layers():
    order = [1, 1, -1, -1, -1.5, -1.5]
    named = {"modules": {"mine": {"kind": "linear"}}}
    alone = capo.check(order, modules=named, plan="te")
    assert str(alone) == str(capo.check(order, modules=named | {"layers": "mine"}, plan="te"))
    assert alone.verdict == capo.check(order, modules="linear", plan="te").verdict == "rejected"
    two = {"modules": {"a": {"kind": "linear"}, "b": {"kind": "linear"}}}
    with pytest.raises(ValueError, match="modules: there are 2 modules here, and no `layers`"):
        capo.check(order, modules=two)


def test_channels_that_hold_bytes_are_declared_by_a_dict():
    ranks = [[1, 1, -1, -1], [1, -1, 1, -1]]
    members = {"transfers": "buffered:100", "transfer": {"bytes": 50}}
    assert "transfers buffered:100" in str(capo.check(ranks, topology="chain", modules=members))
    with pytest.raises(ValueError, match="modules: transfers buffered:100 needs `transfer` with `bytes`"):
        capo.check(ranks, topology="chain", modules={"transfers": "buffered:100"})


def test_chunks_of_the_model_are_declared_by_a_dict():
    order = [1, 2, 3, -3, -2, -1]
    members = {"p2p": "batch", "model_chunks": [1, 2]}
    assert capo.check(order, plan="te", modules=members).accepted
    with pytest.raises(ValueError, match="modules: model chunks add up to 4, but rank 0 has 3 chunks"):
        capo.check(order, plan="te", modules=members | {"model_chunks": [2, 2]})


def test_groups_are_of_ranks_that_there_are():
    group = {"name": "dp", "members": [0, 2], "actions": ["reduce"]}
    with pytest.raises(ValueError, match="modules: group dp has rank 2 among its members"):
        capo.check([[1, -1], [1, -1]], topology="chain", modules={"groups": [group]})


@pytest.mark.parametrize(
    ("argument", "members", "same", "other"),
    [
        ("comm", {"communicators": "per-pair"}, "per-pair", "per-edge"),
        ("plan", {"plan": "te"}, "te", "safe"),
        ("topology", {"topology": "chain"}, "chain", "loop"),
        ("topology", {"topology": {"stages": [[0], [1]]}}, [[0], [1]], [[1], [0]]),
        ("weight_stream", {"weight_stream": True}, True, False),
    ],
)
def test_an_argument_and_a_dict_agree(argument, members, same, other):
    declared = {"topology": "chain"} if argument == "comm" else {}
    ranks = [[1, -1], [1, -1]]
    assert capo.check(ranks, modules=members, **declared, **{argument: same}).accepted
    with pytest.raises(ValueError, match=f"{argument}: the members of `modules` say otherwise"):
        capo.check(ranks, modules=members, **declared, **{argument: other})


SLOTS = {"slots": {0: {0: [0, 1]}}}


def test_a_plan_that_others_made(tmp_path):
    order = [1, 1, -1, -1]
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(SLOTS))
    for given in (SLOTS, json.dumps(SLOTS), str(file), file):
        report = capo.check(order, modules="linear", plan_in=given)
        assert report.accepted and report.hazards == [], str(report)
        assert "plan given" in str(report)
    one_slot = {"slots": {0: {0: [0, 0]}}}
    assert not capo.check(order, modules="linear", plan_in=one_slot).accepted
    assert capo.check([1, -1, 1, -1], modules="linear", plan_in=one_slot).accepted


def test_a_plan_that_does_not_fit_has_no_verdict(tmp_path):
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(SLOTS))
    report = capo.check([1, -1], modules="linear", plan_in=file)
    assert report.verdict == "no-verdict"
    (finding,) = report.diagnostics
    assert "stage 0 has 2 slots here, and 1 microbatch in the orders" in finding.message
    assert finding.spans[0].source == str(file)
    assert capo.check([1, -1], plan_in="{}").diagnostics[0].message.startswith("a plan has one of `buffers`, `slots`")
    with pytest.raises(ValueError, match="plan_in: stands in place of plan"):
        capo.check([1, -1], plan="te", plan_in=SLOTS)
    with pytest.raises(FileNotFoundError):
        capo.check([1, -1], plan_in="missing.json")


def test_passes_before_capture_are_those_of_the_version():
    bytes_of = {"kind": "linear", "dtype": "bf16", "bytes": {"weight": 2097152},
                "shape": {"tokens": 1024, "hidden": 1024, "ffn": 1024}}
    modules = {"budget": 13 << 20, "layers": "block", "modules": {"block": bytes_of}}
    order = [1, -1] * 4
    assert capo.check(order, modules=modules, plan="te").accepted
    assert capo.check(order, modules=modules, plan="te", te_version="2.20").accepted
    report = capo.check(order, modules=modules, plan="te", te_version="2.19")
    assert [finding.rule for finding in report.diagnostics] == ["B08"]
    assert "B08" in capo.draw(order, modules=modules, plan="te", te_version="2.19").svg
    with pytest.raises(ValueError, match="te_version: "):
        capo.check(order, modules=modules, plan="safe", te_version="2.19")
    with pytest.raises(ValueError, match="te_version: "):
        capo.check(order, plan="te", te_version="3")


def test_declarations_of_lists_are_for_lists():
    with pytest.raises(ValueError, match="num_layers_per_chunk: is for lists"):
        capo.check("0F0,0B0\n", num_layers_per_chunk=[1])


def test_other_threads_run_while_an_order_is_judged():
    """No thread gives the interpreter's lock up unasked here, so only the call itself can."""
    turns = [0]
    stop = threading.Event()

    def count():
        while not stop.is_set():
            turns[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    counter = threading.Thread(target=count)
    schedule = capo.generate("1f1b", ranks=8, microbatches=1000)
    sys.setswitchinterval(1000)
    counter.start()
    try:
        ran = False
        for _ in range(50):
            before = turns[0]
            capo.check(schedule)
            ran = ran or turns[0] > before
            if ran:
                break
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        counter.join()
    assert ran
