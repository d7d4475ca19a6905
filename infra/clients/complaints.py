"""Fails if schemathesis reports a finding that is a defect."""

import base64
import json
import sys


def is_expected(check, answer):
    """A well-formed hash or workspace of another account is a 400."""
    return check == "positive_data_acceptance" and answer["code"] == 400 and all(
        issue["path"] == "/workspace_id" or issue["path"].startswith("/allowed_api_key_hashes/") for issue in answer["metadata"]["issues"]
    )


defects, expected = 0, 0
for line in open(sys.argv[1], encoding="utf-8"):
    recorder = json.loads(line).get("ScenarioFinished", {}).get("recorder", {})
    for case, checks in recorder.get("checks", {}).items():
        for check in (c for c in checks if c["status"] != "success"):
            body = base64.b64decode(recorder["interactions"][case]["response"]["content"]["$base64"])
            if is_expected(check["name"], json.loads(body or b"{}").get("error", {"code": 0})):
                expected += 1
                continue
            defects += 1
            print(f"{recorder['label']}: {check['name']}: {check['failure_info']['failure']['message']}\n{body.decode()}")
print(f"{defects} defects, {expected} refusals of other accounts' hashes and workspaces")
sys.exit(defects > 0 or not expected)  # without any, the report was not read
