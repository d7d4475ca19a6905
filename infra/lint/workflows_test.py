"""What deploys has little power, is pinned, and waits only for its like."""

import re
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
    def test_every_package_is_pinned_by_hash(self):
        for file in FOLDER.glob("*.yml"):
            for job in workflow(file.name)["jobs"].values():
                for line in [line for s in steps(job) for line in s.get("run", "").splitlines()]:
                    if re.search(r"\bpip\b", line):
                        self.assertIn("--require-hashes", line)
                    self.assertNotRegex(line, r"\b(npx|npm install|go install|curl|wget)\b")

    def test_only_the_job_that_deploys_has_a_token_and_it_builds_nothing(self):
        jobs = workflow("deploy.yml")["jobs"]
        self.assertEqual(workflow("deploy.yml")["permissions"], {})
        holders = [n for n, job in jobs.items() if "id-token" in job.get("permissions", {})]
        self.assertEqual(holders, ["deploy"])
        run = "\n".join(step.get("run", "") for step in steps(jobs["deploy"]))
        self.assertNotRegex(run, r"\b(sam build|make|go)\b")
        self.assertEqual(jobs["deploy"]["environment"], "${{ inputs.environment }}")

    def test_what_is_deployed_was_tested_and_built_from_main(self):
        jobs = workflow("deploy.yml")["jobs"]
        self.assertEqual(jobs["ci"]["if"], "github.ref == 'refs/heads/main'")
        self.assertEqual(jobs["build"]["needs"], "ci")
        self.assertEqual(jobs["deploy"]["needs"], "build")

    def test_deployments_to_two_environments_do_not_meet(self):
        def group(name, **values):
            concurrency = workflow(name)["concurrency"]
            return concurrency["cancel-in-progress"], re.sub(
                r"\$\{\{ *(.*?) *\}\}",
                lambda found: next(
                    (values[v.strip()] for v in found[1].split("||") if v.strip() in values), ""
                ),
                concurrency["group"],
            )

        runs = [
            {"github.workflow": "deploy", "github.ref": "refs/heads/main",
             "github.run_id": run, "inputs.environment": environment}
            for run, environment in (("1", "dev"), ("2", "prod"))
        ]
        for name in ("deploy.yml", "ci.yml"):
            self.assertNotEqual(*(group(name, **run) for run in runs), name)
        # Two to one environment wait for each other; neither is cancelled.
        again = runs[0] | {"github.run_id": "3"}
        self.assertEqual(group("deploy.yml", **runs[0]), group("deploy.yml", **again))
        self.assertFalse(group("deploy.yml", **again)[0])


if __name__ == "__main__":
    unittest.main()
