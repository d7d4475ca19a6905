"""Calls every operation through the client that openapi-python-client makes of
infra/openapi.yaml, and checks that each status comes with its type. ./run puts the
package signalbox beside it."""

import json
import sys
import uuid

from signalbox import AuthenticatedClient
from signalbox.api.byok import create_byok_key
from signalbox.api.files import delete_file
from signalbox.api.scim import get_sync_job
from signalbox.models import NewByokCredential, Provider, SyncJobStatus

demo = json.load(sys.stdin)
url, key, id = demo["base_url"], demo["management_key"], uuid.UUID(demo["sync_jobs"]["queued"])
file = demo["files"][demo["workspace_id"]][2]
failed = False


def expect(status, answer, typed):
    global failed
    print(int(answer.status_code))
    if answer.status_code != status or not typed(answer.parsed):
        failed = True
        print(f"want {status}, with its type: {answer.parsed}")


client = AuthenticatedClient(base_url=url, token=key)
job = get_sync_job.sync_detailed(id, client=client)
expect(200, job, lambda it: it.data.status == SyncJobStatus.QUEUED and it.data.started_at is None)
same = get_sync_job.sync_detailed(id, client=client, if_none_match=job.headers["ETag"])
expect(304, same, lambda it: it is None)
refused = get_sync_job.sync_detailed(id, client=AuthenticatedClient(base_url=url, token=demo["api_key"]))
expect(401, refused, lambda it: it.error.metadata.reason == "management_key_required")

body, again = NewByokCredential(key="sk-example-0123456789abcdefAbCd", provider=Provider.OPENAI), str(uuid.uuid4())
made = create_byok_key.sync_detailed(client=client, body=body, idempotency_key=again)
expect(201, made, lambda it: it.data.label == "sk-...AbCd" and it.data.allowed_models is None)
body.name = "another"
other = create_byok_key.sync_detailed(client=client, body=body, idempotency_key=again)
expect(400, other, lambda it: len(it.error.metadata.issues) == 1)

gone = delete_file.sync_detailed(file, client=client)
expect(200, gone, lambda it: it.id == file)
expect(404, delete_file.sync_detailed(file, client=client), lambda it: it.error.metadata.request_id)
sys.exit(failed)
