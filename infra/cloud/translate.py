"""Translates template.yaml as CloudFormation's SAM transform does.

Used as a program it writes the translated template to standard output:
    translate.py [Parameter=value ...]
"""

import copy
import functools
import json
import logging
import os
import pathlib
import sys
import types

# The translator needs a region when it is imported, and does not use it.
os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "template.yaml"


@functools.cache  # it takes half a second
def _parsed() -> dict:
    return yaml_parse(SOURCE.read_text())


def source() -> dict:
    """The template, with intrinsic functions in their long form."""
    return copy.deepcopy(_parsed())


def translate(**parameters: str) -> dict:
    """The template that CloudFormation works on, given these parameters."""
    template = source()
    # `sam deploy` uploads the code before the transform runs.
    template["Globals"]["Function"]["CodeUri"] = "s3://artifacts/code.zip"
    # The source suppresses one check; the translation must pass it.
    template["Resources"]["AccessLogGroup"].pop("Metadata")
    logging.disable(logging.WARNING)
    # `load` returns managed policies by name. The template names none.
    translated = transform(template, parameters, types.SimpleNamespace(load=dict))
    # The transform drops the API's metadata on the stage that it generates.
    beside = template["Resources"]["Api"]["Metadata"]
    translated["Resources"]["ApiStage"]["Metadata"] = beside
    return translated


if __name__ == "__main__":
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    json.dump(translate(**given), sys.stdout, indent=2)
