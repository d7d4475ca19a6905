"""Fails if schemathesis reports a finding that is not listed here, or no longer
reports a listed one."""

import base64
import json
import sys

# The reason why a finding is no defect, and a test that recognises it by check and error.
EXPECTED = {
    "an unknown method is a 404, like an unknown path": lambda check, answer: (
        check == "unsupported_method" and answer["code"] == 404
    ),
    "a well-formed hash or workspace of another account is a 400": lambda check, answer: (
        check == "positive_data_acceptance"
        and answer["code"] == 400
        and all(
            issue["path"] == "/workspace_id" or issue["path"].startswith("/allowed_api_key_hashes/")
            for issue in answer["metadata"]["issues"]
        )
    ),
}


def failures(report):
    """Yields each failure: the operation, the check and the answer."""
    for line in report:
        recorder = json.loads(line).get("ScenarioFinished", {}).get("recorder", {})
        for case, checks in recorder.get("checks", {}).items():
            for check in checks:
                if check["status"] != "success":
                    response = recorder["interactions"][case]["response"]
                    yield recorder["label"], check, base64.b64decode(response["content"]["$base64"])


def main(path):
    seen, bad = set(), False
    with open(path, encoding="utf-8") as report:
        for label, check, body in failures(report):
            answer = json.loads(body or b"{}").get("error", {"code": 0, "metadata": {"issues": []}})
            reasons = [name for name, fits in EXPECTED.items() if fits(check["name"], answer)]
            seen.update(reasons)
            if not reasons:
                bad = True
                print(f"{label}: {check['name']}: {check['failure_info']['failure']['message']}\n{body.decode()}")
    for name in EXPECTED.keys() - seen:
        bad = True
        print(f"schemathesis no longer complains; strike it from complaints.py: {name}")
    print("\n".join(f"expected: {name}" for name in sorted(seen)))
    return bad


sys.exit(main(sys.argv[1]))
