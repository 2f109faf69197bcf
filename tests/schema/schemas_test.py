"""The published JSON schemas hold: for every report capo prints, and for every schedule it writes or accepts.

Run by ctest: schemas_test.py CAPO SOURCE_DIR. Prints the counts; fails on the first document that a
schema refuses, and if there was nothing to compare.
"""

import json
import pathlib
import subprocess
import sys

import jsonschema


def main() -> int:
    capo, root = sys.argv[1], pathlib.Path(sys.argv[2])
    report = jsonschema.Draft202012Validator(json.loads((root / "docs/schema/report.schema.json").read_text()))
    schedule = jsonschema.Draft202012Validator(json.loads((root / "docs/schema/schedule.schema.json").read_text()))
    jsonschema.Draft202012Validator.check_schema(report.schema)
    jsonschema.Draft202012Validator.check_schema(schedule.schema)

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
    print(f"{reports} reports, {written} written and {accepted} accepted schedules keep their schemas")
    return 0 if reports > 50 and written > 20 and accepted > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
