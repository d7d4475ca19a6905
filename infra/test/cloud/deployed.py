"""Prints the policies of the translated template, with every name resolved.

The JSON on standard output has the policies of each function's role, and the resource
policy of each key and bucket. The stack has every optional role and key, so that all
statements are tried.
"""

import json
import re
import sys

from stack import ACCOUNT, ARNS, OPERATIONS, REGION, SOURCE, STACK, Stack

# The gaps of the policies in infra/cloud, filled for this stack.
GAPS = {"ACCOUNT": ACCOUNT, "REGION": REGION, "STACK": STACK, "DOMAIN": "signalbox.example.com", "ZONE": "Z1", "REST_ID": f"{STACK}-Api", "BOUNDARY": f"boundary-{STACK}",
        "SEALING_KEY": f"{STACK}-SealingKey", "STORAGE_KEY": f"{STACK}-StorageKey", "ARTIFACTS": "aws-sam-cli-managed-default-*"}


def filled(name: str) -> dict:
    """A policy of infra/cloud, by its name."""
    return json.loads(re.sub("|".join(GAPS), lambda gap: GAPS[gap[0]], (SOURCE.parent / f"infra/cloud/{name}-policy.json").read_text()))


if __name__ == "__main__":
    given = {f"{name}RoleArn": f"arn:aws:iam::{ACCOUNT}:role/{name.lower()}" for name in ("Router", "Rewrap")}
    given["NextSealingKeyArn"] = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/next"
    stack = Stack(**given)
    json.dump({
        "name": STACK,
        "boundary": filled("boundary"),
        "account": ACCOUNT,
        "region": REGION,
        "parameters": given,
        "arns": {name: stack.named(name + ".Arn") for name, r in stack.resources.items() if r["Type"] in ARNS},
        # Each function's role and the policies attached to it; template_test.py forbids any others. The router is judged like a function.
        "functions": {f"{o}Function": {"role": stack.named(f"{o}Role.Arn"), "policies": [p["PolicyDocument"] for p in stack.role(f"{o}Role")["Policies"]]} for o in OPERATIONS} | {
            "Router": {"role": given["RouterRoleArn"], "policies": [stack.properties("RouterPolicy")["PolicyDocument"]]},
        },
        "policies": {name: stack.properties(name)["KeyPolicy"] for name in stack.of_type("AWS::KMS::Key")} | {
            policy["Properties"]["Bucket"]["Ref"]: stack.properties(name)["PolicyDocument"]
            for name, policy in stack.of_type("AWS::S3::BucketPolicy").items()
        },
    }, sys.stdout, indent=2)
