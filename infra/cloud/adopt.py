"""The retained resources of the template, as a separate template: see adopt."""

import json

from translate import translate

KEPT = {"AWS::DynamoDB::Table", "AWS::KMS::Key", "AWS::S3::Bucket"}


def adopted() -> dict:
    """The template without properties that name another resource. The next deployment sets them."""
    template = translate()
    kept = {n: r for n, r in template["Resources"].items() if r["Type"] in KEPT and r["DeletionPolicy"] != "Delete"}
    for resource in kept.values():
        resource.pop("Metadata", None)
        resource["Properties"] = {
            name: value for name, value in resource["Properties"].items()
            if "Fn::GetAtt" not in json.dumps(value) and name != "KeyPolicy"
        }
    return {part: template[part] for part in ("AWSTemplateFormatVersion", "Parameters", "Conditions")} | {"Resources": kept}


if __name__ == "__main__":
    print(json.dumps(adopted(), indent=1))
