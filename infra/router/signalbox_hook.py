"""LiteLLM's side of the authorizer, for chat completions. litellm.yaml names it. The guard
runs before LiteLLM, like Envoy's first tier: it asks for the plan and refuses members that
LiteLLM would read as its own settings. LiteLLM chooses a deployment for each attempt; the
authorizer's step replaces it and its key."""

import contextvars
import json
import os

import httpx
from fastapi import HTTPException, Request
from fastapi.responses import Response
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy import proxy_server

PATHS = {"/v1/chat/completions", "/chat/completions"}  # other paths name the model outside the body
HEALTH = {"/health/liveliness", "/health/liveness", "/health/readiness"}
MAX_BODY = 16 << 20
# LiteLLM reads any other member as a setting, such as timeout or api_base.
MEMBERS = set("""model messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens modalities n
    parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier
    stop store stream stream_options temperature thinking tool_choice tools top_k top_logprobs top_p user verbosity web_search_options""".split())
KEY_HEADERS = ("authorization", "api-key", "x-api-key", "x-goog-api-key")
authorizer = httpx.AsyncClient(base_url=os.environ.get("SIGNALBOX_AUTHORIZER", "http://127.0.0.1:9180"), timeout=10, limits=httpx.Limits(max_connections=None))
request_plan: contextvars.ContextVar[dict] = contextvars.ContextVar("request_plan")


def refusal(status: int, reason: str) -> Response:
    return Response(json.dumps({"error": {"code": status, "message": reason, "metadata": {}}}), status, media_type="application/json")


class Guard:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan" or scope.get("method") == "GET" and scope["path"] in HEALTH:
            return await self.app(scope, receive, send)
        if scope["type"] != "http" or scope["path"] not in PATHS or scope["method"] != "POST":
            return await refusal(404, "Resource not found")(scope, receive, send)
        request = Request(scope, receive)
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY:
                return await refusal(413, "Request body too large")(scope, receive, send)
        try:
            plan = await authorizer.post("/plan", content=bytes(body), headers=[(n, v) for n, v in request.headers.raw if n == b"authorization"])
        except httpx.HTTPError:
            return await refusal(503, "The authorizer is unavailable")(scope, receive, send)
        if plan.status_code != 200:
            return await Response(plan.content, plan.status_code, media_type="application/json")(scope, receive, send)
        try:
            members = json.loads(body)
        except (ValueError, RecursionError):  # such as a number of 5,000 digits
            return await refusal(400, "Invalid request parameters")(scope, receive, send)
        members.pop("metadata", None)  # LiteLLM keeps its own settings there and sends it to no provider
        if members.keys() - MEMBERS:
            return await refusal(400, "Members that are allowed: metadata " + " ".join(sorted(MEMBERS)))(scope, receive, send)
        members["num_retries"] = int(plan.headers["x-envoy-max-retries"])
        messages = [{"type": "http.request", "body": json.dumps(members).encode()}]

        async def decided():
            return messages.pop() if messages else await receive()

        # All attempts of the request share its context.
        request_plan.set({"name": plan.headers["x-signalbox-plan"], "model": members["model"], "credential": "", "answer": 0, "end": None})
        headers = {"content-type": "application/json", "authorization": f"Bearer {proxy_server.master_key}"}
        await self.app(scope | {"query_string": b"", "headers": [(n.encode(), v.encode()) for n, v in headers.items()]}, decided, send)


def moves_on(answer: int) -> bool:
    """Same rule as routing.MovesOn. 0 means that no answer came."""
    return answer in (0, 401, 403, 408, 409, 429) or answer >= 500


async def note_call(request: httpx.Request) -> None:
    plan = request_plan.get({})
    plan["answer"] = plan.get("answer") or 0  # a redirect's status stays when it is followed


async def note_answer(response: httpx.Response) -> None:
    request_plan.get({})["answer"] = response.status_code


def make_client(self, *args, make=httpx.AsyncClient.__init__, **kwargs) -> None:
    """Makes a client that notes a provider's status before it reads the rest: LiteLLM repeats a
    request if its answer breaks off, as if no answer had come."""
    make(self, *args, **kwargs)
    self.event_hooks["request"].append(note_call)
    self.event_hooks["response"].append(note_answer)


class Hook(CustomLogger):
    async def async_pre_call_deployment_hook(self, kwargs, call_type):
        """Gives an attempt the provider and the key of the plan's next step."""
        kwargs |= {"api_key": "refused", "api_base": "http://127.0.0.1:1", "max_retries": 0, "client": None}
        plan = request_plan.get()
        answer, plan["answer"] = plan["answer"], None
        if plan["end"] is None and answer is None:
            plan["end"] = HTTPException(400, "LiteLLM cannot translate this request")
        elif plan["end"] is None and not moves_on(answer):
            plan["end"] = HTTPException(502, "The provider's answer is not complete")
        if plan["end"]:
            raise plan["end"]
        plan["end"] = HTTPException(503, "Stored credentials are unavailable")  # unless a key is opened
        try:
            step = await authorizer.post("/open", headers={"x-signalbox-plan": plan["name"]})
        except httpx.HTTPError:
            raise plan["end"] from None
        if step.status_code != 200:
            raise plan["end"]
        provider = step.headers["x-signalbox-provider"]
        deployment = next(d for d in proxy_server.llm_router.get_model_list(plan["model"]) if d["model_info"]["signalbox_provider"] == provider)
        kwargs |= deployment["litellm_params"]
        header = next(h for h in KEY_HEADERS if h in step.headers)
        kwargs["api_key"] = step.headers[header].removeprefix("Bearer " if header == "authorization" else "")
        plan |= {"credential": step.headers["x-signalbox-credential"], "end": None}
        return kwargs

    async def async_post_call_failure_hook(self, request_data, original_exception, user_api_key_dict, traceback_str=None):
        """A caller is not at fault if a provider refuses the platform's key."""
        if request_plan.get({}).get("credential") == "shared" and getattr(original_exception, "status_code", 0) in (401, 403):
            return HTTPException(502, "The provider refused the platform")


hook = Hook()
httpx.AsyncClient.__init__ = make_client
proxy_server.app.middleware_stack = Guard(proxy_server.app.middleware_stack)
