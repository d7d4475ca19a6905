"""A workflow's job that may deploy or publish builds nothing, and gets the tested build.
zizmor checks that every action is pinned to a commit."""

import unittest

import yaml

from translate import SOURCE


def jobs(name: str) -> dict[str, dict]:
    return yaml.safe_load((SOURCE.parent / ".github/workflows" / name).read_text())["jobs"]


def commands(job: dict) -> str:
    return "\n".join(step.get("run", "") for step in job.get("steps", []))


class Workflows(unittest.TestCase):
    def test_what_is_deployed_or_published_is_merged_and_tested(self):
        deploy, release = jobs("deploy.yml"), jobs("release.yml")
        self.assertEqual(deploy["commit"]["if"], "github.ref == 'refs/heads/main'")
        self.assertEqual([deploy["ci"]["needs"], deploy["build"]["needs"], release["build"]["needs"]], ["commit", ["commit", "ci"], "ci"])
        for job in (deploy["commit"], release["build"]):
            self.assertIn("git merge-base --is-ancestor HEAD origin/main", commands(job))
        # A branch can move between two jobs, so only the first one reads the input.
        refs = {n: [s["with"]["ref"] for s in [job, *job.get("steps", [])] if "ref" in s.get("with", {})] for n, job in deploy.items()}
        sha = ["${{ needs.commit.outputs.sha }}"]
        self.assertEqual(refs, {"commit": ["${{ inputs.ref }}"], "ci": sha, "build": sha, "attest": [], "deploy": sha, "verify": sha})
        self.assertIn("gh attestation verify build.tar.gz", commands(jobs("deploy.yml")["deploy"]))

    def test_a_job_with_rights_builds_nothing(self):
        # verify compiles, before it has its token's role, which cannot deploy.
        holders = {"deploy.yml": {"attest", "deploy", "verify"}, "release.yml": {"publish"}}
        for name, expected in holders.items():
            found = {n for n, job in jobs(name).items() if "write" in job["permissions"].values()}
            self.assertEqual(found, expected)
            for job in found - {"verify"}:
                self.assertNotRegex(commands(jobs(name)[job]), r"\b(sam build|make|go)\b", job)
        roles = {n: s["with"]["role-to-assume"] for n, job in jobs("deploy.yml").items() for s in job.get("steps", []) if "role-to-assume" in s.get("with", {})}
        self.assertEqual(roles, {"deploy": "${{ vars.AWS_ROLE_ARN }}", "verify": "${{ vars.AWS_VERIFY_ROLE_ARN }}"})
