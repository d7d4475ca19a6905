"""Prints the policies of the translated template, with every name resolved.

The JSON on standard output has the policies of each function's role, and the resource
policy of each key and bucket. The stack has every optional role and key, so that all
statements are tried.
"""

import json
import sys

from stack import ACCOUNT, ARNS, REGION, STACK, Stack


def functions(stack: Stack) -> dict:
    """Each function's role and the policies attached to it."""
    found = {}
    for name in stack.of_type("AWS::Lambda::Function"):
        arn = stack.properties(name)["Role"]
        (role,) = (stack.role(r) for r in stack.of_type("AWS::IAM::Role") if stack.named(r + ".Arn") == arn)
        if role.get("ManagedPolicyArns"):
            raise ValueError(f"the role of {name} has managed policies, which cannot be judged here")
        found[name] = {"role": arn, "policies": [p["PolicyDocument"] for p in role["Policies"]]}
    return found


def router(stack: Stack) -> dict:
    """The platform router's role, with RouterPolicy."""
    return {"role": stack.named("RouterRoleArn"), "policies": [stack.properties("RouterPolicy")["PolicyDocument"]]}


def own_policies(stack: Stack) -> dict:
    """The policies of keys and buckets, by their logical ids."""
    keys = {name: stack.properties(name)["KeyPolicy"] for name in stack.of_type("AWS::KMS::Key")}
    buckets = {
        policy["Properties"]["Bucket"]["Ref"]: stack.properties(name)["PolicyDocument"]
        for name, policy in stack.of_type("AWS::S3::BucketPolicy").items()
    }
    return keys | buckets


if __name__ == "__main__":
    given = {f"{name}RoleArn": f"arn:aws:iam::{ACCOUNT}:role/{name.lower()}" for name in ("Router", "Rewrap")}
    given["NextSealingKeyArn"] = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/next"
    stack = Stack(**given)
    json.dump({
        "name": STACK,
        "account": ACCOUNT,
        "region": REGION,
        "parameters": given,
        "arns": {name: stack.named(name + ".Arn") for name, r in stack.resources.items() if r["Type"] in ARNS},
        # The router is judged like a function, by the name of its recorded calls.
        "functions": functions(stack) | {"Router": router(stack)},
        "policies": own_policies(stack),
    }, sys.stdout, indent=2)
