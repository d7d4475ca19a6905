"""Every package is pinned by version and hash, runs no code while it is installed, and
is watched by Dependabot."""

import pathlib
import re
import subprocess
import unittest

import yaml

from translate import SOURCE

ROOT = SOURCE.parent
TRACKED = subprocess.run(
    ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"], check=True, capture_output=True, text=True
).stdout.splitlines()
# The manifest that Dependabot reads in a folder.
MANIFESTS = {"gomod": "go.mod", "npm": "package.json", "pip": "requirements.txt", "maven": "pom.xml"}


def folders(name: str) -> list[str]:
    paths = [pathlib.Path(f) for f in TRACKED if pathlib.Path(f).name == name and (ROOT / f).exists()]
    return sorted("/" + str(p.parent).removeprefix(".") for p in paths)


class SupplyChain(unittest.TestCase):
    def test_dependabot_watches_every_manifest_and_no_other_folder(self):
        updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
        watched = {u["package-ecosystem"]: sorted(u.get("directories") or [u["directory"]]) for u in updates}
        self.assertEqual(watched.pop("github-actions"), ["/"])  # which means .github/workflows
        self.assertEqual(watched, {ecosystem: folders(name) for ecosystem, name in MANIFESTS.items()})

    def test_packages_are_installed_by_hash_only_and_run_nothing(self):
        # pip through infra/release/venv or with its options; npm ci, which checks the lock's hashes.
        install = re.compile(r"\bpip\b[^|;&#]*\binstall\b|\b(npx|npm install|curl [^|]*\| *(ba)?sh)\b")
        found = set()
        for file in TRACKED:
            path = ROOT / file
            if not path.is_file() or not (file == "Makefile" or file.startswith(".github/workflows/") or path.read_bytes()[:20].startswith(b"#!")):
                continue
            for line in path.read_text().splitlines():
                command = line.strip()
                if install.search(command) and not re.match(r"(#|echo|fail|tool|may|must)\b", command) and " fail " not in command:
                    found.add(file)
                    self.assertRegex(command, r"--no-deps --require-hashes --only-binary[ =]:all: -r ", file)
        self.assertIn("infra/release/venv", found)
        for folder in folders("package.json"):
            self.assertIn("ignore-scripts=true\n", (ROOT / folder[1:] / ".npmrc").read_text())
