"""The translated template as CloudFormation evaluates it, in an account of these names."""

import functools
import re
import tomllib

from translate import SOURCE, translate

ACCOUNT = "111122223333"
REGION = "eu-central-1"
STACK = "signalbox"

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
        "AWS::IAM::Role": "iam::${AWS::AccountId}:role/{}",
        "AWS::KMS::Key": "kms:${AWS::Region}:${AWS::AccountId}:key/{}",
        "AWS::Lambda::Function": "lambda:${AWS::Region}:${AWS::AccountId}:function:{}",
        "AWS::Logs::LogGroup": "logs:${AWS::Region}:${AWS::AccountId}:log-group:{}:*",
        "AWS::S3::Bucket": "s3:::{}",
    }.items()
}


@functools.cache  # a translation takes a second
def _translated(given: frozenset) -> dict:
    return translate(**dict(given))


def environments() -> dict[str, dict[str, str]]:
    """The parameters that samconfig.toml has for each stack, by the stack's name."""
    config = tomllib.loads((SOURCE.parent / "samconfig.toml").read_text())
    settings = [commands["global"]["parameters"] for name, commands in config.items() if name != "version"]
    return {s["stack_name"]: dict(p.split("=", 1) for p in s["parameter_overrides"]) for s in settings}


class Stack:
    """The translated template under these parameters; the rest are defaults."""

    pseudo = PSEUDO

    def __init__(self, **given: str):
        template = _translated(frozenset(given.items()))
        self.resources, self.outputs = template["Resources"], template["Outputs"]
        self._conditions = template["Conditions"]
        self._parameters = {
            name: str(given.get(name, parameter.get("Default")))
            for name, parameter in template["Parameters"].items()
        }

    def of_type(self, kind: str) -> dict:
        return {
            name: resource
            for name, resource in self.resources.items()
            if resource["Type"] == kind
        }

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
                    return self.resolve(then if self._holds(condition) else otherwise)
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
            return self.resolve({"Fn::Sub": pattern}).format(self.physical(identifier))
        return f"${{{name}}}"

    def physical(self, identifier: str) -> str:
        """A name like the one that CloudFormation makes."""
        name = f"{STACK}-{identifier}"
        return name.lower() if self.resources[identifier]["Type"] == "AWS::S3::Bucket" else name

    def role(self, identifier: str) -> dict:
        """The properties of a role, with the policies that are attached to it."""
        role = self.properties(identifier)
        attached = [p for p in map(self.properties, self.of_type("AWS::IAM::Policy")) if self.physical(identifier) in p.pop("Roles")]
        return role | {"Policies": role.get("Policies", []) + attached}

    def _holds(self, condition) -> bool:
        if isinstance(condition, str):
            condition = self._conditions[condition]
        (function, argument), = condition.items()
        match function:
            case "Condition":
                return self._holds(argument)
            case "Fn::Not":
                return not self._holds(argument[0])
            case "Fn::And":
                return all(self._holds(item) for item in argument)
            case "Fn::Equals":
                left, right = self.resolve(argument)
                return left == right
        raise ValueError(f"unknown condition function {function}")
