"""Asks capo about an order before TransformerEngine captures it.

A training script has the list at hand that it passes as `_order` to make_graphed_callables(). One
call before that, and a wrong order is an exception with the place in it, not a hang or a wrong
gradient weeks later. The program's path may be said: check_before_capture.py build/ci/cli/capo
"""

import json
import subprocess
import sys


def check_before_capture(capo, order, modules):
    """Raises ValueError where graphs that were captured in this order would be wrong."""
    command = [capo, "check", "--order", json.dumps(order), "--format", "json"]
    ran = subprocess.run(
        command + ["--plan", "te", "--modules", modules], capture_output=True, text=True
    )
    if ran.returncode not in (0, 1):  # 0 accepted, 1 findings; all else is no verdict
        raise RuntimeError(ran.stderr or ran.stdout)
    for finding in json.loads(ran.stdout)["diagnostics"]:
        if finding["severity"] == "error":
            advice = finding["help"]["text"] if finding["help"] else "no advice"
            raise ValueError(f"{finding['rule']}: {finding['message']}; {advice}")


capo = sys.argv[1] if len(sys.argv) > 1 else "capo"
for order in [
    [1, 1, -1, -1.5, -1, -1.5],  # right
    [1, 2, -1, -1],  # TransformerEngine counts entries, and captures the wrong graph
    [1, -1, 1, -1.5, -1, -1.5],  # right in form, but a static input is freed too early
]:
    try:
        check_before_capture(capo, order, "linear")
        print(order, "may be captured")
    except ValueError as error:
        print(order, "is not captured:", error)
