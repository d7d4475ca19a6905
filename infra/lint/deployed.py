"""Prints the policies of the translated template, with every name resolved.

The JSON on standard output has the policies of each function's role, and the resource
policy of each key and bucket.
    deployed.py [Parameter=value ...]
"""

import json
import re
import sys

from stack import Stack

ACCOUNT = "111122223333"
REGION = "eu-central-1"
STACK = "signalbox"

PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": STACK,
    "AWS::URLSuffix": "amazonaws.com",
}

# The result of !GetAtt X.Arn, by type.
ARNS = {
    kind: "arn:${AWS::Partition}:" + pattern for kind, pattern in {
        "AWS::DynamoDB::Table": "dynamodb:${AWS::Region}:${AWS::AccountId}:table/{}",
        "AWS::Events::Rule": "events:${AWS::Region}:${AWS::AccountId}:rule/{}",
        "AWS::IAM::Role": "iam::${AWS::AccountId}:role/{}",
        "AWS::KMS::Key": "kms:${AWS::Region}:${AWS::AccountId}:key/{}",
        "AWS::Lambda::Function": "lambda:${AWS::Region}:${AWS::AccountId}:function:{}",
        "AWS::Logs::LogGroup": "logs:${AWS::Region}:${AWS::AccountId}:log-group:{}:*",
        "AWS::S3::Bucket": "s3:::{}",
    }.items()
}

# AWS::NoValue: a property with this value is left out.
NOTHING = object()


class Deployed(Stack):
    """The translated template under these parameters, with all names resolved."""

    pseudo = PSEUDO

    def resolve(self, value):
        if isinstance(value, list):
            items = [self.resolve(item) for item in value]
            return [item for item in items if item is not NOTHING]
        if isinstance(value, dict) and value == {"Ref": "AWS::NoValue"}:
            return NOTHING
        if isinstance(value, dict) and len(value) == 1:
            (function, argument), = value.items()
            if function == "Ref" and argument in self.pseudo | self.resources:
                return self.named(argument)
            if function == "Fn::GetAtt":
                return self.named(".".join(argument))
        resolved = super().resolve(value)
        if isinstance(resolved, dict):
            return {k: v for k, v in resolved.items() if v is not NOTHING}
        return resolved

    def _substitute(self, argument) -> str:
        text = super()._substitute(argument)
        return re.sub(r"\$\{([^!}]+)\}", lambda found: self.named(found[1]), text)

    def named(self, name: str) -> str:
        """The result of !Ref name, or of !GetAtt id.Arn."""
        if name in self.pseudo:
            return self.pseudo[name]
        identifier, _, attribute = name.partition(".")
        physical = self.physical(identifier)
        if not attribute:
            return physical
        pattern = ARNS.get(self.resources[identifier]["Type"])
        if attribute != "Arn" or not pattern:
            raise ValueError(f"{name} is not known here")
        return self._substitute(pattern).format(physical)

    def physical(self, identifier: str) -> str:
        """The name of a resource."""
        name = f"{STACK}-{identifier}"
        return name.lower() if self.resources[identifier]["Type"] == "AWS::S3::Bucket" else name

    def functions(self) -> dict:
        """Each function's role and the policies attached to it."""
        return {
            name: {"role": role, "policies": self._of_role(role)}
            for name in self.of_type("AWS::Lambda::Function")
            for role in [self.properties(name)["Role"]]
        }

    def router(self) -> dict:
        """The platform router's role, with RouterPolicy."""
        return {
            "role": self.resolve({"Ref": "RouterRoleArn"}),
            "policies": [self.properties("RouterPolicy")["PolicyDocument"]],
        }

    def _of_role(self, arn: str) -> list:
        name = next(n for n in self.of_type("AWS::IAM::Role") if self.named(n + ".Arn") == arn)
        role = self.properties(name)
        if role.get("ManagedPolicyArns"):
            raise ValueError(f"{name} has managed policies, which cannot be judged here")
        inline = [p["PolicyDocument"] for p in role.get("Policies", [])]
        attached = [
            self.properties(policy)["PolicyDocument"]
            for policy in self.of_type("AWS::IAM::Policy")
            if self.named(name) in self.properties(policy)["Roles"]
        ]
        return inline + attached

    def own_policies(self) -> dict:
        """The policies of keys and buckets, by their logical ids."""
        keys = {
            name: self.properties(name)["KeyPolicy"] for name in self.of_type("AWS::KMS::Key")
        }
        buckets = {
            self.resources[name]["Properties"]["Bucket"]["Ref"]:
                self.properties(name)["PolicyDocument"]
            for name in self.of_type("AWS::S3::BucketPolicy")
        }
        return keys | buckets

    def arns(self) -> dict:
        return {
            name: self.named(name + ".Arn")
            for name, resource in self.resources.items()
            if resource["Type"] in ARNS
        }


if __name__ == "__main__":
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    stack = Deployed(**given)
    json.dump({
        "account": ACCOUNT,
        "region": REGION,
        "parameters": given,
        "arns": stack.arns(),
        # The router is judged like a function, by the name of its recorded calls.
        "functions": stack.functions() | {"Router": stack.router()},
        "policies": stack.own_policies(),
    }, sys.stdout, indent=2)
