"""Gives a model of a local server more context, where the server lets its clients decide that."""

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from codeloop.model.catalog.local_servers import DERIVED, ask_json
from codeloop.model.local.context import find_loaded, root_of, server_of
from codeloop.model.wire.response import count, items, text
from codeloop.schema.limits import LOCAL_ASK, LOCAL_LOAD


class Raised(NamedTuple):
    """The name to ask for from now on, and the tokens that it has been loaded with; 0: the server did not do it."""

    model: str
    loaded: int


Raise = Callable[[str, str, int], Awaitable[Raised]]
"""Takes the base URL of the server, the name of the model, and the tokens that its context should have."""


async def _raise_ollama(url: str, model: str, wanted: int) -> Raised:
    """Derive a model with the context: requests of chat completions can't name one. It shares the files of `model`."""
    root, name = root_of(url), derived_name(model, wanted)
    body = {"model": name, "from": model, "parameters": {"num_ctx": wanted}, "stream": False}
    if (await ask_json(f"{root}/api/create", body, LOCAL_ASK.seconds)).get("status") != "success":
        return Raised(model, 0)
    await ask_json(f"{root}/api/generate", {"model": name}, LOCAL_LOAD.seconds)
    return Raised(name, await find_loaded(root, name))


def derived_name(model: str, wanted: int) -> str:
    """Return the name of Ollama's model that is `model` with another context, such as `codeloop/qwen3:8b-32768`."""
    path, _, tag = model.rpartition(":") if re.search(r":[^/]*$", model) else (model, "", "latest")
    return f"{DERIVED}{re.sub(r'[/:]', '-', path)}:{tag}-{wanted}"


async def _raise_lmstudio(url: str, model: str, wanted: int) -> Raised:
    """Load the model anew, in place of what is loaded of it; where that fails, with the context that it had."""
    root = root_of(url)
    listed = items((await ask_json(f"{root}/api/v1/models", None, LOCAL_ASK.seconds)).get("models"))
    found = next((each for each in listed if model in {text(each.get("key")), *_instances_of(each)}), None)
    if found is None:
        return Raised(model, 0)
    before = [count(each, "config", "context_length") for each in items(found.get("loaded_instances"))]
    for instance in _instances_of(found):
        await ask_json(f"{root}/api/v1/models/unload", {"instance_id": instance}, LOCAL_LOAD.seconds)
    raised = await _load_lmstudio(root, text(found.get("key")), wanted)
    if not raised.loaded and before:
        await _load_lmstudio(root, text(found.get("key")), max(before))
    return raised


async def _load_lmstudio(root: str, key: str, context: int) -> Raised:
    body = {"model": key, "context_length": context, "echo_load_config": True}
    answer = await ask_json(f"{root}/api/v1/models/load", body, LOCAL_LOAD.seconds)
    return Raised(text(answer.get("instance_id")) or key, count(answer, "load_config", "context_length"))


def _instances_of(row: dict[str, object]) -> list[str]:
    return [text(each.get("id")) for each in items(row.get("loaded_instances"))]


RAISE: dict[str, Raise] = {"ollama": _raise_ollama, "lmstudio": _raise_lmstudio}
"""By provider id; the others have the context that they were started with."""


def raise_of(provider_id: str, url: str) -> Raise | None:
    """Return how a provider's local server gives a model more context; None: it does not."""
    return RAISE.get(server_of(provider_id, url))
