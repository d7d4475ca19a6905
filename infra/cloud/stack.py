"""template.yaml as CloudFormation sees it: translated, with every name resolved.

Used as a program it prints the translation, or with --retained the part of it that an
import of retained resources accepts (infra/operations/restore.md):
    stack.py [--retained] [Parameter=value ...]
"""

import copy
import functools
import json
import logging
import os
import pathlib
import re
import sys
import tomllib
import types
from unittest import mock

IN_REGION = mock.patch.dict(os.environ, {"AWS_DEFAULT_REGION": "eu-central-1"})  # the translator needs one that it knows, and does not use it
with IN_REGION:
    from samtranslator.translator.transform import transform
    from samtranslator.yaml_helper import yaml_parse

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "template.yaml"
# Nobody writes these into a template: a literal name, region or account must differ.
ACCOUNT = "020406080103"
REGION = "zz-north-9"
STACK = "odd-9-crane"
LONGEST = 25  # of a stack's names: deployer_test.py computes it

# A property with the value of AWS::NoValue is left out.
NOTHING = object()

PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::NoValue": NOTHING,
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
        "AWS::IAM::Role": "iam::${AWS::AccountId}:role{path}{}",
        "AWS::KMS::Key": "kms:${AWS::Region}:${AWS::AccountId}:key/{}",
        "AWS::Lambda::Function": "lambda:${AWS::Region}:${AWS::AccountId}:function:{}",
        "AWS::Logs::LogGroup": "logs:${AWS::Region}:${AWS::AccountId}:log-group:{}:*",
        "AWS::S3::Bucket": "s3:::{}",
    }.items()
}
# The property whose value is the result of !Ref X, by type.
NAMED = {"AWS::ApiGateway::DomainName": "DomainName", "AWS::Logs::LogGroup": "LogGroupName"}


@functools.cache  # it takes half a second
def _parsed() -> dict:
    return yaml_parse(SOURCE.read_text())


def source() -> dict:
    """The template, with intrinsic functions in their long form."""
    return copy.deepcopy(_parsed())


# The logical ids of the functions, without "Function".
OPERATIONS = [name.removesuffix("Function") for name, resource in source()["Resources"].items() if resource["Type"] == "AWS::Serverless::Function"]


def translate(template: dict | None = None, **parameters: str) -> dict:
    """The template that CloudFormation works on, given these parameters."""
    template = copy.deepcopy(template or source())
    # `sam deploy` uploads the code before the transform runs.
    template["Globals"]["Function"]["CodeUri"] = "s3://artifacts/code.zip"
    for resource in template["Resources"].values():
        resource.get("Properties", {}).pop("CodeUri", None)
    template.pop("Metadata", None)  # the translation must pass the checks that the source suppresses
    logging.disable(logging.WARNING)
    # `load` returns managed policies by name. The template names none.
    with IN_REGION:
        translated = transform(template, parameters, types.SimpleNamespace(load=dict))
    logging.disable(logging.NOTSET)
    return translated


@functools.cache  # a translation takes a second
def _translated(template: str, given: frozenset) -> dict:
    return translate(json.loads(template), **dict(given))


KEPT = {"AWS::DynamoDB::Table", "AWS::KMS::Key", "AWS::S3::Bucket"}


def retained(template: dict) -> dict:
    """The resources that a removed stack leaves, without properties that name another resource: the next deployment sets them."""
    kept = {n: r for n, r in template["Resources"].items() if r["Type"] in KEPT | {"AWS::S3::BucketPolicy"} and r["DeletionPolicy"] != "Delete"}
    for resource in kept.values():
        resource.pop("Metadata", None)
        resource["Properties"] = {
            name: value for name, value in resource["Properties"].items()
            if name == "PolicyDocument" or "Fn::GetAtt" not in json.dumps(value) and name != "KeyPolicy"
        }
    return {part: template[part] for part in ("AWSTemplateFormatVersion", "Parameters", "Conditions")} | {"Resources": kept}


def environments() -> dict[str, dict[str, str]]:
    """The parameters that samconfig.toml has for each stack, by the stack's name."""
    config = tomllib.loads((SOURCE.parent / "samconfig.toml").read_text())
    settings = [commands["global"]["parameters"] for name, commands in config.items() if name != "version"]
    return {s["stack_name"]: {n: v.strip('"') for n, v in (p.split("=", 1) for p in s["parameter_overrides"])} for s in settings}


class Stack:
    """The translated template under these parameters; the rest are defaults."""

    pseudo = PSEUDO

    def __init__(self, template: dict | None = None, **given: str):
        template = _translated(json.dumps(template), frozenset(given.items()))
        self.resources, self.outputs = template["Resources"], template["Outputs"]
        self._conditions = template["Conditions"]
        self._parameters = {
            name: str(given.get(name, parameter.get("Default")))
            for name, parameter in template["Parameters"].items()
        }

    def of_type(self, kind: str) -> dict:
        return {name: resource for name, resource in self.resources.items() if resource["Type"] == kind}

    def properties(self, name: str) -> dict:
        return self.resolve(self.resources[name]["Properties"])

    def resolve(self, value):
        """The value without intrinsic functions."""
        if isinstance(value, list):
            return [item for item in map(self.resolve, value) if item is not NOTHING]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            (function, argument), = value.items()
            match function:
                case "Ref":
                    return self.named(argument)
                case "Fn::GetAtt":
                    return self.named(".".join(argument))
                case "Fn::If":
                    condition, then, otherwise = argument
                    return self.resolve(then if self.holds(condition) else otherwise)
                case "Fn::Sub":
                    text, own = argument if isinstance(argument, list) else (argument, {})
                    own = self.resolve(own)
                    return re.sub(r"\$\{([^!}]+)\}", lambda found: own[found[1]] if found[1] in own else self.named(found[1]), text)
                case "Fn::Join":
                    separator, items = argument
                    return separator.join(self.resolve(items))
                case "Fn::Split":
                    separator, text = argument
                    return self.resolve(text).split(separator)
                case "Fn::Select":
                    index, items = argument
                    return self.resolve(items)[int(index)]
        resolved = {name: self.resolve(item) for name, item in value.items()}
        return {name: item for name, item in resolved.items() if item is not NOTHING}

    def named(self, name: str):
        """The result of !Ref name, or of !GetAtt name. An attribute other than Arn stays ${name}."""
        for values in (self._parameters, self.pseudo):
            if name in values:
                return values[name]
        identifier, _, attribute = name.partition(".")
        if not attribute:
            return self.physical(identifier)
        if attribute == "Arn" and (pattern := ARNS.get(self.resources[identifier]["Type"])):
            path = self.resolve(self.resources[identifier]["Properties"].get("Path", "/"))
            return self.resolve({"Fn::Sub": pattern}).format(self.physical(identifier), path=path)
        return f"${{{name}}}"

    def physical(self, identifier: str) -> str:
        """The name that the template gives, or one like CloudFormation's."""
        resource, name = self.resources[identifier], f"{STACK}-{identifier}"
        given = NAMED.get(resource["Type"])
        if given in resource["Properties"]:
            return self.resolve(resource["Properties"][given])
        return name.lower() if resource["Type"] == "AWS::S3::Bucket" else name

    def role(self, identifier: str) -> dict:
        """The properties of a role, with the policies that are attached to it."""
        role = self.properties(identifier)
        attached = [p for p in map(self.properties, self.of_type("AWS::IAM::Policy")) if self.physical(identifier) in p.pop("Roles")]
        return role | {"Policies": role.get("Policies", []) + attached}

    def holds(self, condition) -> bool:
        if isinstance(condition, str):
            condition = self._conditions[condition]
        (function, argument), = condition.items()
        match function:
            case "Condition":
                return self.holds(argument)
            case "Fn::Not":
                return not self.holds(argument[0])
            case "Fn::And":
                return all(self.holds(item) for item in argument)
            case "Fn::Equals":
                left, right = self.resolve(argument)
                return str(left) == str(right)  # CloudFormation compares text
        raise ValueError(f"unknown condition function {function}")


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--retained"]
    printed = translate(**dict(argument.split("=", 1) for argument in given))
    json.dump(retained(printed) if "--retained" in sys.argv else printed, sys.stdout, indent=1)
