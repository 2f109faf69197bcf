"""What a check found, as values. The words are those of the command line, which prints the same."""

import json
from functools import cached_property


class OrderError(ValueError, RuntimeError):
    """An order that was not accepted; its text is the report, and ``report`` the values.

    It is a RuntimeError as well, as of whatever else ``capo.run`` and ``capo.simulate`` cannot do, and
    its text then ends with what was not done.
    """

    def __init__(self, report, undone=None):
        text = str(report).rstrip("\n")
        super().__init__(text if undone is None else f"{text}\n{undone}")
        self.report = report

    def __reduce__(self):
        return (_as_text, self.args)


def _as_text(text):
    """An error that comes from another process, where its report stayed."""
    error = OrderError(text)
    error.report = None
    return error


class Span:
    """A place in the text of an order: line and column count from 1, offset from 0, in bytes."""

    __slots__ = ("column", "label", "length", "line", "offset", "source")

    def __init__(self, told):
        self.source = told["source"]
        self.line = told["line"]
        self.column = told["column"]
        self.offset = told["offset"]
        self.length = told["length"]
        self.label = told.get("label")

    def __repr__(self):
        return f"Span({self.source}:{self.line}:{self.column}, label={self.label!r})"


class Diagnostic:
    """A finding: the rule, the message, where, why, and what would cure it (None if unknown).

    ``witness`` lists the entries that break the rule, and ``edits`` replaces places of the text,
    each a pair of a Span and a replacement, such that the finding goes.
    """

    __slots__ = (
        "edits", "family", "help", "message", "name", "notes", "rule", "severity", "spans", "witness",
    )

    def __init__(self, told):
        self.rule = told["rule"]
        self.name = told["name"]
        self.family = told["family"]
        self.severity = told["severity"]
        self.message = told["message"]
        self.spans = [Span(span) for span in told["spans"]]
        self.notes = [note["text"] for note in told["notes"]]
        cure = told["help"] or {"text": None, "edits": []}
        self.help = cure["text"]
        self.edits = [(Span(edit["span"]), edit["replacement"]) for edit in cure["edits"]]
        self.witness = told["witness"]

    def __repr__(self):
        return f"{type(self).__name__}({self.severity}[{self.rule}]: {self.message})"


class Suppressed(Diagnostic):
    """A finding that is suppressed, with the reason and where that is written: ``"step.order:4:31"``."""

    __slots__ = ("reason", "written_at")

    def __init__(self, told):
        super().__init__(told)
        self.reason = told["suppression"]["reason"]
        self.written_at = told["suppression"]["written_at"]


class Profile:
    """The answer of another program; ``accepts`` is None if it cannot be asked."""

    __slots__ = ("accepts", "disagreement", "error_kind", "name", "reason")

    def __init__(self, name, told):
        self.name = name
        self.accepts = told["accepts"]
        self.error_kind = told["error_kind"]
        self.reason = told["reason"]
        self.disagreement = told["disagreement"]

    def __repr__(self):
        return f"Profile({self.name}: accepts={self.accepts}, error_kind={self.error_kind!r})"


class Report:
    """The verdict on an order with its reasons.

    >>> import capo
    >>> report = capo.check([1, -1, -1])
    >>> report.accepted, [finding.rule for finding in report.diagnostics]
    (False, ['S15'])
    """

    def __init__(self, judgement, profiles):
        self._judgement = judgement
        self._asked = tuple(profiles)
        self.verdict = judgement.verdict

    @property
    def accepted(self):
        """Whether no execution that the model permits breaks a rule."""
        return self.verdict == "accepted"

    @cached_property
    def _told(self):
        return json.loads(self.to_json())

    @cached_property
    def diagnostics(self):
        """The findings, sorted by place; of each rule the first hundred."""
        return [Diagnostic(told) for told in self._told["diagnostics"]]

    @cached_property
    def suppressed(self):
        """The findings that a comment of the order or ``capo.toml`` suppresses, with their reasons; an order
        with such errors alone is accepted, and its text says so."""
        return [Suppressed(told) for told in self._told.get("suppressed", [])]

    @cached_property
    def profiles(self):
        """The answer of each program that was asked, by the name that was asked for."""
        answers = self._told["profiles"]
        sound = {
            "accepts": None if self.verdict == "no-verdict" else self.accepted,
            "error_kind": None,
            "reason": None,
            "disagreement": None,
        }
        nobody = {**sound, "accepts": None, "reason": "the text is no order"}
        return {
            name: Profile(name, sound if name == "sound" else answers.get(name, nobody))
            for name in self._asked
        }

    @property
    def hazards(self):
        """Memory that is read after it was taken over; None if no plan was looked at."""
        return self._told["hazards"]

    @property
    def victims(self):
        """Chunk and microbatch of what is read too late, by kind of buffer, and the rank if there
        are several; None if no plan was looked at."""
        return self._told["victims"]

    @property
    def slots(self):
        """Static inputs of the plan, all ranks together; None if no plan was looked at."""
        return self._told["slots"]

    @property
    def bytes(self):
        """Memory of each rank; None if the sizes of layers are not declared."""
        return self._told["bytes"]

    @property
    def transfer_buffers(self):
        """Slots that each rank's receives need, and tensors that it is sending at once; None if no
        plan was looked at, or nobody transfers."""
        return self._told["transfer_buffers"]

    def __str__(self):
        return self._judgement.text()

    def __repr__(self):
        return f"<capo.Report: {self.verdict}>"

    def to_json(self):
        """The report as ``capo check --format json`` prints it."""
        return self._judgement.json()

    def raise_for_errors(self):
        """Raise OrderError, whose text is the report, unless the order is accepted."""
        if not self.accepted:
            raise OrderError(self)

    def _repr_html_(self):
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def order_error(judgement, undone):
    """The error of an order that was not accepted, so that something could not be done with it."""
    return OrderError(Report(judgement, ("sound",)), undone)
