"""Calls models through Envoy, beside the authorizer. envoy.yaml and router.yaml are unchanged
except for addresses. A provider here records every request. The test compares the requests with a plan by a second implementation.

A request's text sets the providers' answers to its attempts: "17 401 503 200"."""

import asyncio
import collections
import contextlib
import itertools
import json
import logging
import os
import pathlib
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time

import aiohttp
import yaml
from aiohttp import web

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD, BIN = ROOT / ".build", pathlib.Path(sys.executable).parent
PROVIDERS = {"openai": "authorization", "azure": "api-key", "anthropic": "x-api-key"}
MODELS = {"small": ["openai"], "large": ["openai", "anthropic"], "other": ["anthropic", "azure", "openai"]}
VECTORS = json.loads((HERE / "plans.json").read_text())
TIMED_OUT = (503, [])  # the response, and what the providers received, if the authorizer's reads time out


class Failed(Exception):
    """A check failed."""


# Settings that a client may try to choose.
FORGED = {"x-signalbox-plan": "p", "x-signalbox-provider": "azure", "x-signalbox-user": "u", "x-api-key": "sk-forged", "api-key": "sk-forged", "cookie": "c=sk-forged",
          "x-envoy-max-retries": "9", "x-envoy-retry-on": "5xx,retriable-4xx", "x-envoy-upstream-rq-timeout-ms": "1"}


def check(holds: bool, what: str, *seen) -> None:
    if not holds:
        raise Failed(f"FAILED: {what}: {' '.join(map(str, seen))}")


# Ports below those that a system gives out for "any port": Envoy opens its own later.
PORTS = itertools.count(random.randrange(20000, 30000))


def free_port() -> int:
    for port in PORTS:
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


class Provider:
    """Every provider, each on its own port. It records which key each received."""

    def __init__(self) -> None:
        self.ports = {name: free_port() for name in PROVIDERS}
        self.received = collections.defaultdict(list)  # number: [(provider, key)]
        self.leaks, self.secrets = [], set()

    async def start(self) -> None:
        for name, port in self.ports.items():
            app = web.Application(client_max_size=1 << 25)
            app.router.add_post("/{path:.*}", lambda r, name=name: self.answer(r, name))
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", port).start()

    async def answer(self, request: web.Request, name: str) -> web.StreamResponse:
        body = await request.json()
        content = body["messages"][0]["content"]
        number, *answers = (content if isinstance(content, str) else content[0]["text"]).split()
        keys = {h.title(): v for h, v in request.headers.items() if h.lower() in (*PROVIDERS.values(), "x-goog-api-key", "cookie")}
        text = str(request.raw_headers) + request.path_qs + json.dumps(body)
        if len(keys) != 1 or "x-signalbox" in text.lower() or any(s in text for s in self.secrets):
            self.leaks.append((name, number, list(request.headers)))
        attempt = len(self.received[number])
        key = keys.get("Authorization", "").removeprefix("Bearer ") or next(iter(keys.values()), "")
        self.received[number].append((name, key))
        status = int(answers[attempt]) if attempt < len(answers) and answers[attempt] != "cut" else 200
        if status == 0:
            request.transport.close()
            return web.Response()
        if status != 200:
            return web.json_response({"error": {"message": "no", "type": "t", "code": "c"}}, status=status, headers={"x-envoy-ratelimited": "true"})
        if body.get("stream") or "cut" in answers:
            return await self.stream(request, "cut" in answers)
        return web.json_response(MESSAGE if request.path.endswith("/messages") else COMPLETION)

    async def stream(self, request: web.Request, cut: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for part in ("a", "b", "c"):
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": part}}]}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
            await asyncio.sleep(0.3)
            if cut:
                request.transport.abort()
                return response
        await response.write(b"data: [DONE]\n\n")
        return response


COMPLETION = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
MESSAGE = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "yes"}],
           "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}


class Faulty:
    """A TCP proxy before an engine: up, down (it closes connections) or silent."""

    def __init__(self, url: str) -> None:
        self.to, self.port, self.mode, self.open = int(url.rsplit(":", 1)[1]), free_port(), "up", set()

    async def start(self) -> None:
        await asyncio.start_server(self.serve, "127.0.0.1", self.port)

    def set(self, mode: str) -> None:
        self.mode = mode
        for writer in list(self.open):
            writer.transport.abort()

    async def serve(self, reader, writer) -> None:
        self.open.add(writer)
        try:
            if self.mode == "down":
                return
            if self.mode == "silent":
                await reader.read()
                return
            from_engine, to_engine = await asyncio.open_connection("127.0.0.1", self.to)
            await asyncio.gather(self.copy(reader, to_engine), self.copy(from_engine, writer))
        except (OSError, asyncio.CancelledError):  # the connection was closed, or the program ends
            pass
        finally:
            self.open.discard(writer)
            writer.transport.abort()

    async def copy(self, reader, writer) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()


class Process:
    """A process that can be killed and started again on the same port."""

    def __init__(self, log: pathlib.Path, ready: str, *command, **env: str) -> None:
        self.log, self.ready, self.command, self.env, self.process = log, ready, command, os.environ | env, None

    async def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.env, cwd=self.log.parent)
        deadline = time.monotonic() + 120
        async with aiohttp.ClientSession() as client:
            while True:
                try:
                    async with client.get(self.ready) as r:
                        if r.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{self.command[0]} did not start:\n{self.log.read_text()[-3000:]}")
                await asyncio.sleep(0.1)

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()


def envoy_config(port: int, admin: int, authorizer: int, providers: dict[str, int]) -> dict:
    """envoy.yaml with the test's addresses, and providers without TLS."""
    config = yaml.safe_load((HERE / "envoy.yaml").read_text())
    resources = config["static_resources"]
    resources["listeners"][0]["address"]["socket_address"]["port_value"] = port
    for cluster in resources["clusters"]:
        address = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"].get("socket_address")
        if cluster["name"] == "signalbox_authorizer":
            address["port_value"] = authorizer
        elif "transport_socket" in cluster:
            del cluster["transport_socket"]
            address.update(address="127.0.0.1", port_value=providers[cluster["name"]])
    config["admin"] = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": admin}}}
    return config


class Bench:
    """All running processes."""

    def __init__(self, work: pathlib.Path) -> None:
        self.work, self.provider, self.number, self.random = work, Provider(), 0, random.Random(os.environ.get("SEED", "1"))
        self.ports = {name: free_port() for name in ("authorizer", "envoy", "admin")}
        self.demo, stack = (json.loads((work / f"state/{f}.json").read_text()) for f in ("demo", "stack"))
        self.dynamodb, self.kms = Faulty(stack["endpoints"]["dynamodb"]), Faulty(stack["endpoints"]["kms"])
        config = yaml.safe_load((HERE / "router.yaml").read_text())
        config |= {"listen": f"127.0.0.1:{self.ports['authorizer']}", "models": MODELS}
        config["stack"] = {n: stack["outputs"][n] for n in config["stack"]}
        for name in PROVIDERS:
            (work / name).write_text(f"sk-platform-{name}\n")
            config["providers"][name]["key_file"] = str(work / name)
        (work / "router.yaml").write_text(yaml.safe_dump(config))
        (work / "envoy.yaml").write_text(yaml.safe_dump(envoy_config(self.ports["envoy"], self.ports["admin"], self.ports["authorizer"], self.provider.ports)))
        self.authorizer = Process(
            work / "authorizer.log", f"http://127.0.0.1:{self.ports['authorizer']}/health", BUILD / "router", "-config", work / "router.yaml", AWS_REGION="us-east-1",
            AWS_ACCESS_KEY_ID=stack["access_key_id"], AWS_SECRET_ACCESS_KEY=stack["secret_access_key"],
            AWS_ENDPOINT_URL_DYNAMODB=f"http://127.0.0.1:{self.dynamodb.port}", AWS_ENDPOINT_URL_KMS=f"http://127.0.0.1:{self.kms.port}")
        self.envoy = Process(
            work / "envoy.log", f"http://127.0.0.1:{self.ports['admin']}/ready", BIN / "envoy", "-c", work / "envoy.yaml", "-l", "warn", "--concurrency", "2", "--base-id", str(os.getpid()))

    def admin(self, *arguments: str) -> dict:
        done = subprocess.run([BUILD / "admin", "--local", self.work / "state", "--json", *arguments], capture_output=True, check=True, text=True)
        return json.loads(done.stdout) if done.stdout.strip().startswith("{") else {}

    async def start(self) -> None:
        self.client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=1), timeout=aiohttp.ClientTimeout(60))
        await asyncio.gather(self.provider.start(), self.dynamodb.start(), self.kms.start())
        await asyncio.gather(self.authorizer.start(), self.envoy.start())

    async def close(self) -> None:
        for process in (self.envoy, self.authorizer):
            process.kill()
        await self.client.close()

    async def store(self, tenant: "Tenant", **settings) -> dict:
        """Stores a credential through the API and returns it with its key."""
        key = f"sk-{tenant.name}-{self.random.getrandbits(64):x}"
        if self.random.random() < 0.2:
            key = "Bearer " + key  # no prefix of the header: it belongs to the key
        async with self.client.post(self.demo["base_url"] + "/byok", json={"key": key, **settings}, headers={"Authorization": "Bearer " + tenant.management}) as r:
            check(r.status == 201, "a credential is stored", r.status, await r.text())
            stored = {**(await r.json())["data"], "key": key}
        tenant.credentials.append(stored)
        return stored

    async def call(self, key: str, model: str, answers=(), headers: dict | None = None, more: str = "", tries: int = 10) -> tuple[int, list]:
        """Calls a model, with more members. Returns the status and the keys that providers
        received. Repeats a call that got 503 before its first attempt: on a busy machine
        DynamoDB may answer too late."""
        while (got := await self.call_once(key, model, answers, headers, more)) == TIMED_OUT and tries > 1:
            tries -= 1
        return got

    async def call_once(self, key: str, model: str, answers, headers: dict | None, more: str) -> tuple[int, list]:
        self.number += 1
        number = str(self.number)
        message = json.dumps({"model": model, "max_tokens": 5, "messages": [{"role": "user", "content": " ".join([number, *map(str, answers)])}]})
        headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json", **(headers or {})}
        async with self.client.post(f"http://127.0.0.1:{self.ports['envoy']}/v1/chat/completions", data=message[:-1] + more + "}", headers=headers) as r:
            self.last = await r.text()
            check("sk-" not in self.last and "x-signalbox" not in str(r.raw_headers).lower(), "no key is in a response", self.last, r.raw_headers)
            return r.status, self.provider.received.pop(number, [])


class Tenant:
    """An account with a management key, a standard key and its credentials."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.name, self.credentials = name, []
        account = bench.admin("account", "create", name)["id"]
        manager = bench.admin("key", "create", "m", "--kind", "management", "--account", account)
        self.management, self.other_hash = manager["key"], manager["hash"]
        made = bench.admin("key", "create", "s", "--account", account)
        self.account, self.key, self.hash = account, made["key"], made["hash"]
        bench.provider.secrets |= {self.key, self.management}

    def plan(self, model: str) -> list[tuple[str, str]]:
        """The plan for the tenant's key: (provider, key) in order."""
        keys = {c["id"]: c["key"] for c in self.credentials}
        steps = plan(self.credentials, {"model": model, "api_key_hash": self.hash, "providers": MODELS[model]})
        return [(provider, keys.get(id, "sk-platform-" + provider)) for provider, id in steps]


def plan(credentials: list[dict], request: dict) -> list[tuple[str, str | None]]:
    """A second implementation of routing.NewPlan: (provider, credential) in order."""
    within = lambda value, allowed: allowed is None or bool(value) and value in allowed
    live = sorted((c for c in credentials if not c.get("disabled")), key=lambda c: (c["sort_order"], c["id"]))
    covers = lambda c: within(request["model"], c.get("allowed_models"))
    usable = [c for c in live if covers(c) and within(request["api_key_hash"], c.get("allowed_api_key_hashes")) and within(request.get("user_id"), c.get("allowed_user_ids"))]
    closed = {c["provider"] for c in live if c.get("is_byok_only") or c.get("is_required") and covers(c)}
    providers = list(dict.fromkeys(request["providers"]))
    own = lambda fallback: [(p, c["id"]) for p in providers for c in usable if c["provider"] == p and c.get("is_fallback", False) == fallback]
    return own(False) + [(p, None) for p in providers if p not in closed] + own(True)


def vectors() -> None:
    for case in VECTORS["cases"]:
        steps = [id or f"{provider} shared" for provider, id in plan(case["credentials"], case["request"])]
        check(steps == case["steps"], case["name"], steps, case["steps"])
    print(f"plans.json: {len(VECTORS['cases'])} cases", flush=True)


def expected(plan: list, answers: list[int]) -> tuple[int, list]:
    """The status that the caller gets, and the keys that the providers receive. Answer 0 means
    that the provider closes the connection."""
    if not plan:
        return 403, []
    for turn, (provider, key) in enumerate(plan):
        status = answers[turn] if turn < len(answers) else 200
        if status and status not in VECTORS["moves_on"] or turn == len(plan) - 1:
            reported = VECTORS["reported_of_shared"] if key.startswith("sk-platform") else {}
            return reported.get(str(status), status or 503), plan[: turn + 1]
    raise AssertionError


async def exactly(bench: Bench, tenants: list[Tenant], count: int) -> None:
    """Random requests: every provider receives exactly the keys of the plan. On a busy
    machine DynamoDB's time-out may end a few."""
    r, began, attempts, ended = bench.random, time.monotonic(), 0, 0

    async def some(requests: int) -> None:
        nonlocal attempts, ended
        for _ in range(requests):
            tenant, model = r.choice(tenants), r.choice(list(MODELS))
            answers = [r.choice([200, 200, 200, 200, 200, 0, 401, 403, 408, 409, 429, r.randrange(400, 600)]) for _ in range(8)]
            got = await bench.call(tenant.key, model, answers, r.choice([FORGED, {}]), tries=1)
            want = expected(tenant.plan(model), answers)
            check(got == want or got == (503, want[1][:len(got[1])]), f"request {answers} for {model} of {tenant.name}: got, want", got, want)
            attempts, ended = attempts + len(got[1]), ended + (got != want)

    await asyncio.gather(*(some(count // 20) for _ in range(20)))
    check(ended <= count / 10, f"Envoy serves what it can", ended)
    print(f"{count} random requests, {attempts} attempts, no wrong key, {ended} ended by a time-out ({time.monotonic() - began:.0f} s)", flush=True)


async def faults(bench: Bench) -> None:
    """A fault in opening a key ends the request; the shared step is not reached."""
    for number, (engine, mode) in enumerate((e, m) for e in (bench.dynamodb, bench.kms) for m in ("down", "silent")):
        tenant = Tenant(bench, f"fault-{number}")
        stored = await bench.store(tenant, provider="openai")
        engine.set(mode)
        got = await bench.call(tenant.key, "small", tries=1)
        engine.set("up")
        check(got == TIMED_OUT, f"an engine that is {mode} ends the request", got, bench.last)
        got = await bench.call(tenant.key, "small", [401])
        check(got == (200, [("openai", stored["key"]), ("openai", "sk-platform-openai")]), "requests are served again", got, bench.last)
    print(f"DynamoDB or KMS down or silent: 503, and no provider was called", flush=True)


async def kills(bench: Bench, tenant: Tenant) -> None:
    """After a kill -9 of each part under load, every request follows its plan, or ends."""
    plan, ended, served, killed = tenant.plan("large"), 0, 0, False

    async def caller() -> None:
        nonlocal ended, served
        while not killed:
            try:
                status, received = await bench.call(tenant.key, "large", [429], tries=1)
            except aiohttp.ClientError:
                status, received = 503, []
            check((status, received) == expected(plan, [429]) or status >= 500 and received == plan[: len(received)], f"Envoy after a kill", status, received)
            served, ended = served + (status == 200), ended + (status != 200)
            await asyncio.sleep(0.01 if status == 200 else 0.1)

    callers = asyncio.gather(*(caller() for _ in range(4)))
    for process in (bench.authorizer, bench.envoy):
        await asyncio.sleep(0.5)
        process.kill()
        await asyncio.sleep(0.5)
        await process.start()
    await asyncio.sleep(0.5)
    killed = True
    await callers
    check(served and ended, "requests are served and ended", served, ended)
    print(f"kill -9 of the authorizer and of Envoy under load: {served} served, {ended} ended, none by another key", flush=True)


async def changes(bench: Bench, turns: int) -> None:
    """Revocation and rotation under load take effect at the next request. Only a time-out of
    DynamoDB makes a request fail, at most one in ten."""
    tenant, done, failed, ended = Tenant(bench, "changes"), False, [], 0
    current = await bench.store(tenant, provider="openai")
    calls, off = [], []  # (began, ended, key), and (key, from, until)

    async def caller() -> None:
        nonlocal ended
        while not done:
            began = time.monotonic()
            status, received = await bench.call(tenant.key, "small", tries=1)
            calls.append((began, time.monotonic(), received[-1][1] if received else ""))
            if (status, received) == TIMED_OUT:
                ended += 1
            elif status != 200 or len(received) != 1:
                failed.append((status, received))

    async def admin(*arguments: str) -> None:
        await asyncio.to_thread(bench.admin, "credential", *arguments, "--account", tenant.account)

    callers = asyncio.gather(*(caller() for _ in range(4)))
    for _ in range(turns):
        await admin("disable", current["id"])
        began = time.monotonic()
        await asyncio.sleep(0.05)
        off.append((current["key"], began, time.monotonic()))
        await admin("enable", current["id"])
        await asyncio.sleep(0.05)
        new = await bench.store(tenant, provider="openai")
        await admin("supersede", current["id"], new["id"])
        off.append((current["key"], time.monotonic(), float("inf")))
        current = new
    done = True
    await callers
    check(not failed and ended <= len(calls) / 10, "no request fails, and at most one in ten times out", failed[:3], ended, len(calls))
    late = [c for c in calls for key, began, until in off if c[2] == key and c[0] >= began and c[1] <= until]
    after = sum(any(c[0] >= began and c[1] <= until for _, began, until in off) for c in calls)
    check(not late and after, "a request after a change does not use the old key", late[:3], after)
    print(f"{turns} revocations and {turns} rotations under load: {len(calls)} requests, {ended} ended by a time-out, none failed, {after} after a change, none with an old key", flush=True)


async def refusals(bench: Bench, tenant: Tenant) -> None:
    """A caller without the right is refused, and no provider is called."""
    for status, key, model, more in (
            (401, tenant.key + "x", "small", ""), (403, tenant.management, "small", ""), (404, tenant.key, "unknown", ""), (400, tenant.key, "small", ',"model":"large"')):
        got = await bench.call(key, model, more=more)
        check(got == (status, []), "Envoy refuses", status, more, got, bench.last)
    got = await bench.call(tenant.key, "small", more=',"metadata":{"api_base":"http://127.0.0.1:1","api_key":"sk-forged"}')
    check(got == (200, tenant.plan("small")[:1]), "Envoy takes nothing from a client's metadata", got, bench.last)


async def streams(bench: Bench, tenant: Tenant) -> None:
    """After a failed attempt, a stream arrives while it is sent. No attempt follows an answer
    that breaks off."""
    async def stream(answer: str, streamed: bool = True) -> tuple[list, list]:
        bench.number += 1
        message, arrived = {"model": "small", "stream": streamed, "messages": [{"role": "user", "content": f"{bench.number} {answer}"}]}, []
        try:
            async with bench.client.post(f"http://127.0.0.1:{bench.ports['envoy']}/v1/chat/completions", json=message, headers={"Authorization": "Bearer " + tenant.key}) as r:
                async for line in r.content:
                    if b'"content":' in line:
                        arrived.append(time.monotonic())
        except aiohttp.ClientError:
            pass
        return arrived, bench.provider.received.pop(str(bench.number), [])

    async def served(*arguments) -> tuple[list, list]:
        for _ in range(10):
            if (got := await stream(*arguments)) != ([], []):  # else the authorizer's reads timed out
                break
        return got

    for streamed in (True, False):
        arrived, received = await served("cut", streamed)
        check(received == tenant.plan("small")[:1], f"an answer that breaks off", streamed, received)
    arrived, received = await served("429")
    check(len(arrived) >= 3 and arrived[2] - arrived[0] > 0.4 and received == tenant.plan("small")[:2], f"Envoy streams", arrived, received)
    print(f"parts of a stream arrive {', '.join(f'{1000 * (a - arrived[0]):.0f}' for a in arrived[:3])} ms after the first", flush=True)


async def run(work: pathlib.Path) -> None:
    with subprocess.Popen([BUILD / "local", "-root", ROOT, "-state", work / "state", "-port", "0"], stdout=subprocess.DEVNULL, env=os.environ | {"QUIET": "1"}) as edition:
        try:
            while not (work / "state/demo.json").exists():
                check(edition.poll() is None, "the edition starts")
                time.sleep(0.05)
            await checks(Bench(work))
        finally:
            edition.terminate()


async def checks(bench: Bench) -> None:
    try:
        await bench.start()
        vectors()
        tenants = [Tenant(bench, "anna"), Tenant(bench, "berta")]
        first = await bench.store(tenants[0], provider="openai")
        got = await bench.call(tenants[0].key, "small")
        check(got == (200, [("openai", first["key"])]), "the provider receives the key that was posted", got, bench.last)
        print("the provider received the key that was posted", flush=True)
        r, requests = bench.random, int(os.environ.get("REQUESTS", "10000"))
        for tenant in tenants:
            for _ in range(9):
                await bench.store(tenant, provider=r.choice(list(PROVIDERS)), is_fallback=r.random() < 0.4, is_required=r.random() < 0.2,
                                  is_byok_only=r.random() < 0.05, allowed_models=r.choice([None, None, None, ["large"], ["small", "other"]]),
                                  allowed_api_key_hashes=r.choice([None, None, None, [tenant.hash], [tenant.other_hash]]), allowed_user_ids=r.choice([None, None, None, ["u"]]))
        plain = Tenant(bench, "plain")
        await bench.store(plain, provider="openai")
        await refusals(bench, plain)
        await exactly(bench, tenants, requests)
        await streams(bench, plain)
        await changes(bench, max(2, requests // 1000))
        await faults(bench)
        await kills(bench, plain)
        for log in bench.work.glob("*.log"):
            text = log.read_text()
            check("sk-" not in text and not any(s in text for s in bench.provider.secrets), "no key is in a log", log.name)
        check(not bench.provider.leaks, "a provider receives one key and nothing of the caller's", bench.provider.leaks[:3])
    except Failed:
        print("The authorizer's log:", bench.authorizer.log.read_text()[-2000:], file=sys.stderr)
        raise
    finally:
        await bench.close()


if __name__ == "__main__":
    logging.disable()  # aiohttp would log the connections that are closed on purpose
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(pathlib.Path(folder)))
