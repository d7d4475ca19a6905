"""LiteLLM's side of the authorizer: litellm.yaml names what is here. It is a trial:
`make routers ROUTERS=litellm` checks it, CI does not, and no check of it covers
faults, kills, or changes under load.

The plan of a request is in a ContextVar, never in its metadata, which a client can
write. LiteLLM chooses a deployment; the authorizer's step replaces it and its key."""

import contextvars
import hashlib
import json
import os

import httpx
from fastapi import HTTPException, Request
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import UserAPIKeyAuth

PATHS = {"/v1/chat/completions", "/chat/completions"}  # others name a model elsewhere than in the body
# Members with which a client would decide about keys, addresses or attempts.
REFUSED = {"api_key", "api_base", "base_url", "api_version", "organization", "fallbacks", "context_window_fallbacks", "content_policy_fallbacks",
           "num_retries", "max_retries", "model_list", "user_config", "extra_headers", "headers", "litellm_credential_name", "custom_llm_provider",
           "litellm_metadata", "model_group_retry_policy", "router_settings_override", "proxy_server_request", "disable_fallbacks"}
KEY_HEADERS = ("authorization", "api-key", "x-api-key", "x-goog-api-key")
authorizer = httpx.AsyncClient(base_url=os.environ.get("SIGNALBOX_AUTHORIZER", "http://127.0.0.1:9180"), timeout=10)
request_plan: contextvars.ContextVar[dict] = contextvars.ContextVar("request_plan")


async def ask(path: str, headers: dict, body: bytes = b"") -> httpx.Headers:
    try:
        answer = await authorizer.post(path, headers=headers, content=body)
    except httpx.HTTPError:
        raise HTTPException(503, "The authorizer is unavailable") from None
    if answer.status_code != 200:
        raise HTTPException(answer.status_code, answer.json()["error"]["message"])
    return answer.headers


async def user_api_key_auth(request: Request, api_key: str) -> UserAPIKeyAuth:
    """Asks for the plan of the request; the authorizer knows who calls."""
    if request.url.path not in PATHS:
        raise HTTPException(404, "Resource not found")
    body = await request.body()
    bearer = request.headers.get("authorization", "")
    plan = await ask("/plan", {"authorization": bearer}, body)
    members = json.loads(body)
    if refused := REFUSED & members.keys():
        raise HTTPException(400, f"The router decides about {', '.join(sorted(refused))}")
    decided = {"name": plan["x-signalbox-plan"], "retries": int(plan["x-envoy-max-retries"]), "model": members["model"], "credential": ""}
    return UserAPIKeyAuth(api_key=hashlib.sha256(bearer.encode()).hexdigest(), metadata={"signalbox": decided})


class Hook(CustomLogger):
    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        plan = dict(user_api_key_dict.metadata["signalbox"])
        request_plan.set(plan)  # the context of the request, which its attempts share
        return data | {"num_retries": plan["retries"]}

    async def async_pre_call_deployment_hook(self, kwargs, call_type):
        """Gives an attempt the provider and the key of the plan's next step."""
        kwargs |= {"api_key": "refused", "api_base": "http://127.0.0.1:1", "max_retries": 0, "client": None}
        from litellm.proxy.proxy_server import llm_router

        plan = request_plan.get()
        name, plan["name"] = plan["name"], None  # a refusal ends the request
        if name is None:
            raise HTTPException(503, "Stored credentials are unavailable")
        step = await ask("/open", {"x-signalbox-plan": name})
        provider, plan["credential"] = step["x-signalbox-provider"], step["x-signalbox-credential"]
        deployment = next(d for d in llm_router.get_model_list(plan["model"]) if d["model_info"]["signalbox_provider"] == provider)
        kwargs |= {k: deployment["litellm_params"][k] for k in ("model", "api_base")}
        kwargs["api_key"] = next(step[h] for h in KEY_HEADERS if h in step).removeprefix("Bearer ")
        plan["name"] = name
        return kwargs

    async def async_post_call_failure_hook(self, request_data, original_exception, user_api_key_dict, traceback_str=None):
        """A provider's refusal of the platform's key is no caller's fault."""
        plan = request_plan.get({})
        if plan.get("credential") == "shared" and getattr(original_exception, "status_code", 0) in (401, 403):
            return HTTPException(502, "The provider refused the platform")


hook = Hook()
