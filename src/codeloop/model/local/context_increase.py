"""Increases the context of a model on a local server, for the servers whose API allows that (Ollama, LM Studio)."""

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from codeloop.model.catalog.local_request import request_json
from codeloop.model.catalog.local_servers import DERIVED_PREFIX
from codeloop.model.local.context_length import get_server_root, identify_server, read_loaded_context
from codeloop.model.wire.json_values import list_objects, read_count, read_text
from codeloop.schema.limits import LOCAL_LOAD_TIME, LOCAL_STATUS_TIME


class LoadResult(NamedTuple):
    """The model's name for further requests, and the context that it is loaded with in tokens; 0: loading failed."""

    model: str
    loaded_tokens: int


ContextIncrease = Callable[[str, str, int], Awaitable[LoadResult]]
"""Takes the base URL of the server, the name of the model, and the tokens that its context should have."""


async def _increase_ollama(url: str, model: str, tokens: int) -> LoadResult:
    """Create a model with `tokens` of context and the files of `model`: a chat completion can't set the context."""
    root, name = get_server_root(url), name_derived_model(model, tokens)
    body = {"model": name, "from": model, "parameters": {"num_ctx": tokens}, "stream": False}
    if (await request_json(f"{root}/api/create", body, LOCAL_STATUS_TIME.seconds)).get("status") != "success":
        return LoadResult(model, 0)
    # Without a prompt this only loads the model.
    await request_json(f"{root}/api/generate", {"model": name}, LOCAL_LOAD_TIME.seconds)
    return LoadResult(name, await read_loaded_context(root, name))


def name_derived_model(model: str, tokens: int) -> str:
    """Return the name of Ollama's model that is `model` with another context, such as `codeloop/qwen3:8b-32768`."""
    # `hf.co/user/model:Q4` has slashes, and a registry may have a port: the tag is what follows the last colon.
    path, _, tag = model.rpartition(":") if re.search(r":[^/]*$", model) else (model, "", "latest")
    return f"{DERIVED_PREFIX}{re.sub(r'[/:]', '-', path)}:{tag}-{tokens}"


async def _increase_lmstudio(url: str, model: str, tokens: int) -> LoadResult:
    """Load the model again with `tokens` of context; if that fails, with the context that it had before."""
    root = get_server_root(url)
    rows = list_objects((await request_json(f"{root}/api/v1/models", None, LOCAL_STATUS_TIME.seconds)).get("models"))
    row = next((each for each in rows if model in {read_text(each.get("key")), *_list_instance_ids(each)}), None)
    if row is None:
        return LoadResult(model, 0)
    contexts_before = [
        read_count(each, "config", "context_length") for each in list_objects(row.get("loaded_instances"))
    ]
    # Loading it a second time would take the memory twice.
    for instance in _list_instance_ids(row):
        await request_json(f"{root}/api/v1/models/unload", {"instance_id": instance}, LOCAL_LOAD_TIME.seconds)
    result = await _load_lmstudio(root, read_text(row.get("key")), tokens)
    if not result.loaded_tokens and contexts_before:
        await _load_lmstudio(root, read_text(row.get("key")), max(contexts_before))
    return result


async def _load_lmstudio(root: str, key: str, tokens: int) -> LoadResult:
    body = {"model": key, "context_length": tokens, "echo_load_config": True}
    answer = await request_json(f"{root}/api/v1/models/load", body, LOCAL_LOAD_TIME.seconds)
    return LoadResult(read_text(answer.get("instance_id")) or key, read_count(answer, "load_config", "context_length"))


def _list_instance_ids(row: dict[str, object]) -> list[str]:
    return [read_text(each.get("id")) for each in list_objects(row.get("loaded_instances"))]


CONTEXT_INCREASES: dict[str, ContextIncrease] = {"ollama": _increase_ollama, "lmstudio": _increase_lmstudio}
"""By provider id; other servers keep the context that they were started with."""


def find_context_increase(provider_id: str, url: str) -> ContextIncrease | None:
    """Return the function that has a provider's local server give a model more context; None: the server can't."""
    return CONTEXT_INCREASES.get(identify_server(provider_id, url))
