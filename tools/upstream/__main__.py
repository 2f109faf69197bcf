"""./dev upstream [--all] [--store] [PACKAGE[==VERSION] ...]

Fetches the newest torch, transformer-engine and megatron-core from PyPI, or what is named, takes out what capo has a model
of, asks it what tests/data has answers to, and prints where the answers differ. Nothing of a release is kept.

    --all     every answer that differs, not the first of each area
    --store   takes the digests of the definitions of what was fetched as those that are looked for from now on

Exit code 0: no difference; 1: there are some; 2: wrong usage, or PyPI has no such release; 5: PyPI cannot be reached.
docs/upstream.md says what to do then.
"""

import json
import sys
from pathlib import Path

import of_mcore
import of_te
import of_torch
import pypi
from questions import compare, compare_definitions, modelled

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
DEFINITIONS = DATA / "upstream.json"
RELEASES = {of.PACKAGE: of for of in (of_torch, of_te, of_mcore)}


def stored_definitions():
    return json.loads(DEFINITIONS.read_text()) if DEFINITIONS.exists() else {}


def look_at(of, version, every, say):
    """Prints how a release differs. Returns the version, its definitions and the number of differences."""
    version, texts = pypi.read(of.PACKAGE, version, of.FILES)
    say(f"{of.PACKAGE} {version}")
    known = stored_definitions().get(of.PACKAGE, {"version": "nothing", "definitions": {}})
    found = modelled(texts, of.MODELLED)
    differences = compare_definitions(known["definitions"], found, say)
    vectors = {name: json.loads((DATA / name).read_text()) for name in of.VECTORS}
    differences += compare(of.questions(texts, vectors), say, every)
    say(f"  {'differences: ' + str(differences) if differences else 'no difference'}; definitions stored are those of {known['version']}")
    return {"version": version, "definitions": found}, differences


def main(arguments, say=print):
    if "--help" in arguments:
        say(__doc__.strip())
        return 0
    every, store = "--all" in arguments, "--store" in arguments
    named = [argument for argument in arguments if argument not in ("--all", "--store")] or list(RELEASES)
    asked = [name.partition("==")[::2] for name in named]
    unknown = [package for package, _ in asked if package not in RELEASES]
    if unknown:
        print(f"dev upstream: there are {', '.join(RELEASES)}, and no {unknown[0]}", file=sys.stderr)
        return 2
    stored, differences = stored_definitions(), 0
    try:
        for package, version in asked:
            stored[package], more = look_at(RELEASES[package], version or None, every, say)
            differences += more
    except pypi.Unreachable as why:
        print(f"dev upstream: PyPI cannot be reached: {why}", file=sys.stderr)
        return 5
    except pypi.NoRelease as why:
        print(f"dev upstream: {why}", file=sys.stderr)
        return 2
    if store:
        DEFINITIONS.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
