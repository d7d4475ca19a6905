"""The tests, files and make targets that the documents name exist."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENTS = ("README.md", *(
    str(page.relative_to(ROOT)) for pattern in (".github/*.md", "infra/*.md", "infra/clients/*.md", "infra/local/*.md", "infra/operations/*.md")
    for page in sorted(ROOT.glob(pattern))))


def written(document: str) -> str:
    return (ROOT / document).read_text()


def quoted(document: str) -> list[str]:
    """The texts in single back-quotes, without blocks of code."""
    prose = re.sub(r"^ *```.*?^ *```", "", written(document), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", prose)


class Evidence(unittest.TestCase):
    def test_tests_exist(self):
        files = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*_test.go"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        ).stdout.split()
        code = "".join((ROOT / file).read_text() for file in files)
        known = set(re.findall(r"^func ((?:Test|Fuzz|Benchmark)\w+)\(", code, flags=re.MULTILINE))
        for document in DOCUMENTS:
            for name in quoted(document):
                if re.fullmatch(r"(Test|Fuzz|Benchmark)\w+", name):
                    with self.subTest(f"{name} in {document}"):
                        self.assertIn(name, known)

    def test_paths_exist(self):
        for document in DOCUMENTS:
            folder = (ROOT / document).parent
            links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", written(document))
            paths = [p for p in quoted(document) if re.match(r"(functions|shared|infra|\.github)/[^ …<]*$", p)]
            for base, path in [(folder, p) for p in links] + [(ROOT, p) for p in paths]:
                with self.subTest(f"{path} in {document}"):
                    self.assertTrue(list(base.glob(path)) if "*" in path else (base / path).exists())

    def test_targets_exist(self):
        makefile = written("Makefile")
        for document in DOCUMENTS:
            for name in quoted(document):
                if target := re.fullmatch(r"make ([a-z-]+).*", name):
                    with self.subTest(f"{name} in {document}"):
                        self.assertRegex(makefile, rf"(?m)^{target[1]}:")
