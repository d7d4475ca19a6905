"""What people paste from a page does the same in bash and in zsh, macOS's shell, for which `#` begins no comment at a prompt."""

import re
import subprocess
import unittest

from account import ROOT

PAGES = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
QUOTED = r"""'[^']*'|"(?:\\.|[^"\\])*\""""

class Blocks(unittest.TestCase):
    def test_no_comment_is_code_for_zsh(self):
        """Nothing stands before a comment, and it has only letters, digits and what no shell acts on."""
        found = 0
        for page in PAGES:
            for block in re.findall(r"(?ms)^ *```sh\n(.*?)^ *```$", (ROOT / page).read_text()):
                found += 1
                for line in re.sub(QUOTED, "", block).splitlines():
                    with self.subTest(page=page, line=line):
                        self.assertNotRegex(line, r"\S.*\s#")
                        self.assertRegex(line, r"^ *([^# ]|# [\w ,.:/-]+$|$)")
        self.assertGreater(found, 20)


if __name__ == "__main__":
    unittest.main()
