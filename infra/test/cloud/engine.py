"""ministack as an AWS account: an engine of AWS's APIs that nobody here wrote, which executes a deployment.

The lists here are its deviations.
"""

import os
import pathlib
import platform
import re
import socket
import subprocess
import sys
import time
import urllib.parse

from account import ROOT, Account, Subject
from botocore.exceptions import BotoCoreError, ClientError
from checks import DIFFERS, FAIL, NOT_CHECKED
from life import Deployment
from stack import source

# No page and no default has it.
REGION = "ap-southeast-3"
# CreateChangeSet refuses a template with these types.
UNKNOWN_TYPES = {"AWS::CodeDeploy::Application", "AWS::CodeDeploy::DeploymentGroup", "AWS::Logs::QueryDefinition",
                 "AWS::WAFv2::LoggingConfiguration", "AWS::WAFv2::WebACLAssociation"}
# The creation of an alarm with several metrics fails, and rolls back.
METRIC_MATH = "Properties.Metrics (metric math) is not supported"

# The tests of infra/test/contract that fail. The gateway takes // for / and a final / for nothing, and
# decodes a path before it routes. It refuses bad requests by itself.
CONTRACT = re.compile("|".join((
    r"TestUnknownRoutes/\w+_(/.*/|.*//.*)", r"TestIDs/\w+_escaped_(slash|letter)", r"TestIDs/deleteFile_escaped_(dots|path)",
    r"TestEveryStatus/(\w+_Bad_Request|deleteFile_OK)",
)))

# The checks with another verdict than PASS, and what they have seen.
VERDICTS = {
    "tls": (NOT_CHECKED, "http has no TLS"),
    "drift": (FAIL, r"^(\w+ not reported; )+\d+ in sync"),  # it reads 14 types
    "contract": (FAIL, r"^\d+ tests passed; skipped: none; failed: "),
    "alarm-recipients": (DIFFERS, "alarms reach nobody"),  # as the parameters say
    "metric-filters": (FAIL, "counted nothing"),
    "secrets-in-logs": (FAIL, "have a line"),  # the access log stays empty
    "firewall-body": (DIFFERS, "the function refused it"),
    "canary": (FAIL, "UPDATE_COMPLETE"),
}

# How fast this machine is proves nothing.
UNJUDGED = {"latency"}
# It copies the stack's tag to other resources only.
UNTAGGED = ("bucket ", "log group ")


def stripped(template: dict) -> dict:
    """The template without the types that the engine does not know, and without metric math."""
    function = template["Globals"]["Function"]
    function.pop("DeploymentPreference", None)  # from which the transform makes CodeDeploy's resources
    for name, resource in list(template["Resources"].items()):
        resource.get("Properties", {}).pop("DeploymentPreference", None)
        if resource["Type"] in UNKNOWN_TYPES or "Metrics" in resource.get("Properties", {}):
            del template["Resources"][name]
    return template


class EngineAccount(Account):
    remembered = ""  # the engine takes --role-arn, and remembers no role

    def stack(self, name: str) -> dict | None:
        found = super().stack(name)
        return found and found | {"RoleARN": self.remembered}


class Engine:
    """A running ministack. It makes this process use it as AWS."""

    def __init__(self, folder: pathlib.Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        os.environ.update({
            "AWS_ENDPOINT_URL": self.url, "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION, "MINISTACK_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_PAGER": "",
            "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
            "SAM_CLI_TELEMETRY": "0", "SAM_CLI_POLL_DELAY": "0.2", "SIGNALBOX_FOREIGN_GATEWAY": "1",
            "PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), str(ROOT / ".build/sam/bin"), os.environ["PATH"]]),
        })
        for name in ("AWS_PROFILE", "AWS_CA_BUNDLE", "AWS_SESSION_TOKEN", "PYTHONPATH"):
            os.environ.pop(name, None)
        self.log = (folder / "engine.log").open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ministack"], cwd=folder, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True,
            env=os.environ | {
                "GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "TMPDIR": str(folder),
                "IOT_MTLS_ENABLED": "0", "SFTP_ENABLED": "0", "DOCKER_HOST": "unix:///nowhere",
            },
        )
        for _ in range(300):
            try:
                self.account = EngineAccount()
                return
            except (BotoCoreError, ClientError):
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        self.close()
        raise SystemExit(f"cloud: ministack did not start: {(folder / 'engine.log').read_text()[-2000:]}")

    def close(self) -> None:
        """Ends the engine and the functions that it started."""
        try:
            os.killpg(self.process.pid, 15)
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        except ProcessLookupError:
            pass
        self.log.close()


class EngineDeployment(Deployment):
    """A deployment of what the engine knows, with what it leaves out put in its place."""

    def __init__(self, account: Account, name: str) -> None:
        super().__init__(account, name, {"team": "platform"})
        self.architectures = ["arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"] * 2
        self.template = stripped(source())

    def subject(self) -> Subject:
        subject = super().subject()
        api, stage = subject.physical["Api"], subject.parameters["StageName"]
        subject.url = urllib.parse.urlsplit(f"{os.environ['AWS_ENDPOINT_URL']}/restapis/{api}/{stage}/_user_request_/api/v1")
        subject.patience = 3
        return subject

    def deploy(self, stage: str) -> Subject:
        subject = super().deploy(stage)
        gateway, api = self.account.client("apigateway"), subject.physical["Api"]
        # The engine ignores the responses in the API's body.
        for kind, response in self.template["Resources"]["Api"]["Properties"]["GatewayResponses"].items():
            gateway.put_gateway_response(
                restApiId=api, responseType=kind, statusCode=str(response["StatusCode"]), responseTemplates=response["ResponseTemplates"],
                responseParameters={f"gatewayresponse.header.{n}": v for n, v in response["ResponseParameters"]["Headers"].items()},
            )
        gateway.create_deployment(restApiId=api, stageName=subject.parameters["StageName"])
        return subject
