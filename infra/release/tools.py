"""Checks the licences of the npm and PyPI packages that are installed here: tools
and engines for tests, none of it shipped or linked. Fails at one that is not named."""

import glob
import json
import re
import sys
from importlib import metadata

# Accepted licences, as whole words, with the spellings of PyPI's classifiers.
ALLOWED = (
    r"(MIT|MIT-0|0BSD|ISC|ISCL|Zlib|BSD|BSD-[23]-Clause|Apache-2\.0|Apache|MPL-2\.0|MPL 2\.0|Mozilla Public|"
    r"PSF-2\.0|Python-2\.0|Python Software Foundation|CNRI-Python|CC0-1\.0|Freely Distributable)"
)
WORDS = re.compile(rf"(\s|[();]|\b(AND|OR|License|Software)\b|\b2\.0\b|(?<![\w-]){ALLOWED}(?![\w-]))*")
# Tools that only run: nothing from them is in a build.
NAMED = {
    "@cloud-copilot/iam-policy": "AGPL-3.0-or-later: judges the policies in `make iam`",
    "@cloud-copilot/iam-simulate": "AGPL-3.0-or-later: judges the policies in `make iam`",
    "@cloud-copilot/iam-utils": "AGPL-3.0-or-later: judges the policies in `make iam`",
    "RestrictedPython": "ZPL-2.1, permissive: a part of LiteLLM's proxy",
    "cookiecutter": "BSD-3-Clause by its LICENSE, no word in its metadata: a part of the SAM CLI",
    "email-validator": "The Unlicense, permissive: a part of LiteLLM's proxy",
    "text-unidecode": "Artistic or GPL, as one chooses: a part of the SAM CLI",
}


def npm():
    for lock in glob.glob("infra/*/package-lock.json"):
        with open(lock, encoding="utf-8") as file:
            for path, package in json.load(file)["packages"].items():
                if path:
                    yield lock, path.split("node_modules/")[-1], package.get("license", "")


def pypi():
    for venv in glob.glob(".build/*/lib/python*/site-packages") + glob.glob(".build/**/venv/lib/python*/site-packages", recursive=True):
        for package in metadata.distributions(path=[venv]):
            about = package.metadata
            classes = [c.split(" :: ")[-1] for c in about.get_all("Classifier", []) if c.startswith("License ::")]
            text = about.get("License-Expression") or "; ".join(classes) or (about.get("License") or "").split("\n")[0]
            yield venv, about["Name"], text


bad, counts, named = False, {}, set()
for where, name, licence in [*npm(), *pypi()]:
    kind = where.split("/lib/")[0]
    counts[kind] = counts.get(kind, 0) + 1
    if name in NAMED:
        named.add(name)
    elif not licence or not WORDS.fullmatch(licence):
        bad = True
        print(f"{where}: {name}: the licence is {licence or 'unknown'}", file=sys.stderr)
for where, count in sorted(counts.items()):
    print(f"{count:4} tools' packages of {where}")
for name in sorted(named):
    print(f"named: {name}: {NAMED[name]}")
sys.exit(bad)
