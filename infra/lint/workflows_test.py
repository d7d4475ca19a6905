"""A deployment workflow has few rights, is pinned, and waits only for its own kind. zizmor, beside
these tests, holds every action to a commit."""

import unittest

import yaml

from translate import SOURCE

FOLDER = SOURCE.parent / ".github" / "workflows"


def workflow(name: str) -> dict:
    # YAML 1.1 reads the key "on" as true.
    return yaml.safe_load((FOLDER / name).read_text())


def steps(job: dict) -> list[dict]:
    return job.get("steps", [])


class Workflows(unittest.TestCase):
    def test_who_has_a_token_and_the_job_that_deploys_builds_nothing(self):
        jobs = workflow("deploy.yml")["jobs"]
        self.assertEqual(workflow("deploy.yml")["permissions"], {})
        holders = [n for n, job in jobs.items() if "id-token" in job.get("permissions", {})]
        self.assertEqual(holders, ["attest", "deploy", "verify"])
        # AWS trusts environments; a job without one gets no role.
        self.assertEqual([n for n in holders if "environment" in jobs[n]], ["deploy", "verify"])
        self.assertEqual([s["uses"].partition("@")[0] for s in steps(jobs["attest"])], ["actions/download-artifact", "actions/attest-build-provenance"])
        roles = [s["with"]["role-to-assume"] for n in holders for s in steps(jobs[n]) if "role-to-assume" in s.get("with", {})]
        self.assertEqual(roles, ["${{ vars.AWS_ROLE_ARN }}", "${{ vars.AWS_VERIFY_ROLE_ARN }}"])
        run = "\n".join(step.get("run", "") for step in steps(jobs["deploy"]))
        self.assertNotRegex(run, r"\b(sam build|make|go)\b")
        self.assertEqual([jobs[n]["environment"] for n in ("deploy", "verify")], ["${{ inputs.environment }}", "${{ inputs.environment }}-verify"])

    def test_what_is_deployed_was_tested_and_built_from_main(self):
        jobs = workflow("deploy.yml")["jobs"]
        run = "\n".join(step.get("run", "") for step in steps(jobs["deploy"]))
        self.assertEqual(jobs["ci"]["if"], "github.ref == 'refs/heads/main'")
        self.assertEqual(jobs["build"]["needs"], "ci")
        self.assertEqual(jobs["deploy"]["needs"], ["build", "attest"])
        self.assertIn("gh attestation verify build.tar.gz", run)
        self.assertIn('--role-arn "$SERVICE_ROLE"', run)
        for file in ("deploy.yml", "release.yml"):
            merged = {"run": "git merge-base --is-ancestor HEAD origin/main"}
            self.assertIn(merged, steps(workflow(file)["jobs"]["build"]))
        compiled, *_, credentials = [i for i, s in enumerate(steps(jobs["verify"])) if "go test" in s.get("run", "") or "configure-aws" in s.get("uses", "")]
        self.assertLess(compiled, credentials)
        self.assertEqual(jobs["verify"]["needs"], "deploy")
        self.assertIn('make verify STACK="signalbox-$ENVIRONMENT"', [s.get("run") for s in steps(jobs["verify"])])

    def test_a_release_is_tested_and_what_may_write_builds_nothing(self):
        release = workflow("release.yml")
        jobs = release["jobs"]
        self.assertEqual(release["permissions"], {})
        self.assertEqual(release[True], {"push": {"tags": ["v*"]}})
        self.assertEqual([jobs["build"]["needs"], jobs["publish"]["needs"]], ["ci", "build"])
        writers = [n for n, job in jobs.items() if "write" in job["permissions"].values()]
        self.assertEqual(writers, ["publish"])
        self.assertEqual(jobs["publish"]["environment"], "release")
        self.assertFalse([s for s in steps(jobs["publish"]) if "checkout" in s.get("uses", "")])
        run = "\n".join(step.get("run", "") for step in steps(jobs["publish"]))
        self.assertNotRegex(run, r"\b(make|go)\b")

    def test_deployments_to_two_environments_do_not_meet(self):
        self.assertEqual(
            workflow("deploy.yml")["concurrency"],
            {"group": "deploy-${{ inputs.environment }}", "cancel-in-progress": False},
        )
        # Each deployment runs ci.yml, and none cancels the tests of another.
        group = workflow("ci.yml")["concurrency"]["group"]
        self.assertEqual(group, "ci-${{ github.event.pull_request.number || github.run_id }}")


if __name__ == "__main__":
    unittest.main()
