"""An order in any form in which Python holds one, as the module takes it."""

import json
import os
import types
from collections.abc import Mapping

from capo import _capo

_ENDINGS = (".order", ".csv", ".json", ".te")


def _names_a_file(text):
    """A text is a path if such a file exists, or if it ends as one and is a single word."""
    if "\n" in text or len(text) > 4096 or "\0" in text:
        return False
    if text.endswith(_ENDINGS) and not any(mark in text for mark in "[](),; "):
        return True
    return os.path.isfile(text)


def _read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read(), os.fspath(path)


def plan_text(given):
    """A plan that others made, a path, JSON or a dict: its text and the name that messages use; None of None."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return json.dumps(given), "<plan>"
    if isinstance(given, str) and given.lstrip().startswith("{"):
        return given, "<plan>"
    return _read(given)


def project_of(order):
    """The nearest capo.toml from the folder of an order that is a path, with the order's name in it; None if
    there is none."""
    named = isinstance(order, os.PathLike) or (isinstance(order, str) and _names_a_file(order))
    if not named:
        return None
    path = folder = os.path.abspath(order)
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        project = os.path.join(folder, "capo.toml")
        if os.path.isfile(project):
            text, name = _read(project)
            return _capo.ProjectText(name, text, os.path.relpath(path, folder).replace(os.sep, "/"))
    return None


def _of_mapping(order):
    """The orders of ranks by their numbers, TransformerEngine's lists or torch's tables; else the JSON form of a schedule."""
    if not all(isinstance(rank, int) for rank in order):
        return json.dumps(order), "<order>"
    ranks = [order[rank] for rank in sorted(order)]
    if sorted(order) != list(range(len(ranks))):
        raise TypeError(f"order: the keys of a mapping are ranks, 0 and up, and here {', '.join(map(str, sorted(order)))}")
    if all(isinstance(entry, (int, float)) or hasattr(entry, "__float__") for rank in ranks for entry in rank):
        return ranks, "<order>"
    return taken(types.SimpleNamespace(pipeline_order=order))


def taken(order):
    """The order and the name that messages use for it: the arguments of each call of the module."""
    if isinstance(order, _capo.Schedule):
        return order, "<schedule>"
    if isinstance(order, str):
        return _read(order) if _names_a_file(order) else (order, "<order>")
    if isinstance(order, os.PathLike):
        return _read(order)
    held = getattr(order, "_held", None)
    if isinstance(held, _capo.Schedule):
        return held, "<schedule>"
    if is_torch_schedule(order):
        from capo.torch import table

        return table(order), "<schedule>"
    if isinstance(order, Mapping):
        return _of_mapping(order)
    if isinstance(order, (bytes, bytearray)):
        raise TypeError("order: it is bytes; decode them to a text")
    return order, "<order>"


def is_torch_schedule(order):
    """Whether an object has the table of torch's schedules."""
    return hasattr(order, "pipeline_order_with_comms") or hasattr(order, "pipeline_order")
