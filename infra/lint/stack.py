"""The translated template as CloudFormation evaluates it.

Stack resolves the intrinsic functions that these tests need, if they depend only on parameters.
References to resources stay.
"""

import functools
import re
import tomllib

from translate import SOURCE, translate


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
        """The value with its parameters put in."""
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            (function, argument), = value.items()
            if function == "Ref" and argument in self._parameters:
                return self._parameters[argument]
            if function == "Fn::If":
                condition, then, otherwise = argument
                return self.resolve(then if self._holds(condition) else otherwise)
            if function == "Fn::Sub":
                return self._substitute(argument)
            if function == "Fn::Join":
                separator, items = argument
                return separator.join(self._text(item) for item in self.resolve(items))
            if function == "Fn::Split":
                separator, text = argument
                return self.resolve(text).split(separator)
            if function == "Fn::Select":
                index, items = argument
                return self.resolve(items)[int(index)]
        return {name: self.resolve(item) for name, item in value.items()}

    def _text(self, value) -> str:
        """The value within a text. A resource is ${Id}, as in Fn::Sub."""
        return f"${{{value['Ref']}}}" if isinstance(value, dict) else value

    def _substitute(self, argument) -> str:
        text, named = argument if isinstance(argument, list) else (argument, {})
        named = self._parameters | {k: str(self.resolve(v)) for k, v in named.items()}
        return re.sub(
            r"\$\{([^!}]+)\}",
            lambda found: named.get(found[1], found[0]),
            text,
        )

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
