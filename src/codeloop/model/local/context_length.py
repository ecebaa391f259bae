"""Reads the context length that a local server gives a model,
and increases it where the server's API allows that.

By default it is often less than the model supports.
"""

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from codeloop.kit.jsonc import is_object
from codeloop.model.catalog.local_servers import DERIVED_PREFIX, request_json
from codeloop.model.wire.json_values import list_objects, read_count, read_text
from codeloop.net.client import join_url
from codeloop.schema.limits import LOCAL_LOAD_TIME, LOCAL_STATUS_TIME

ADVISED_CONTEXT_TOKENS = 32_768
"""The context, in tokens, that users are advised to give a model that supports it."""


class LocalContext(NamedTuple):
    """The context that a model is loaded with, and its maximum; 0: unknown.
    `remedy`: how to increase it.
    """

    loaded_tokens: int = 0
    max_tokens: int = 0
    remedy: str = ""


ContextReader = Callable[[str, str], Awaitable[LocalContext]]
"""Takes the base URL of the server and the name of the model."""


async def _read_ollama(url: str, model: str) -> LocalContext:
    """Ask Ollama, which silently cuts the beginning off long requests.

    Only a loaded model has a length, so the model is loaded if it is not.
    """
    root = get_server_root(url)
    answer = await request_json(f"{root}/api/show", {"model": model}, LOCAL_STATUS_TIME.seconds)
    details = answer.get("model_info")
    # Such as `qwen3.context_length`, by the model's architecture.
    lengths = (
        [name for name in details if name.endswith(".context_length")] if is_object(details) else []
    )
    max_tokens = max((read_count(answer, "model_info", name) for name in lengths), default=0)
    loaded = await read_loaded_context(root, model)
    if not loaded and answer:
        # Without a prompt this only loads the model.
        await request_json(f"{root}/api/generate", {"model": model}, LOCAL_LOAD_TIME.seconds)
        loaded = await read_loaded_context(root, model)
    advised = _choose_advised_context(max_tokens)
    remedy = (
        f"Start Ollama with a longer context: `OLLAMA_CONTEXT_LENGTH={advised} ollama serve` "
        "(in its app: Settings, Context length)."
    )
    # Without a maximum, no more context is tried for a model that could not be loaded at all.
    return LocalContext(loaded, max_tokens if loaded else 0, remedy)


async def read_loaded_context(root: str, model: str) -> int:
    """Return the tokens of context that Ollama has loaded a model with; 0: it is not loaded."""
    running = await request_json(f"{root}/api/ps", None, LOCAL_STATUS_TIME.seconds)
    # Ollama adds the tag to a name without one.
    names = {model, f"{model}:latest"}
    rows = (
        each
        for each in list_objects(running.get("models"))
        if {read_text(each.get("name")), read_text(each.get("model"))} & names
    )
    return next((read_count(each, "context_length") for each in rows), 0)


async def _read_lmstudio(url: str, model: str) -> LocalContext:
    answer = await request_json(
        f"{get_server_root(url)}/api/v0/models/{model}", None, LOCAL_STATUS_TIME.seconds
    )
    max_tokens = read_count(answer, "max_context_length")
    remedy = (
        f"Load it with a longer context: `lms load {model} --context-length "
        f"{_choose_advised_context(max_tokens)}`."
    )
    return LocalContext(read_count(answer, "loaded_context_length"), max_tokens, remedy)


async def _read_llama_cpp(url: str, model: str) -> LocalContext:
    # llama-server serves one model.
    del model
    answer = await request_json(f"{get_server_root(url)}/props", None, LOCAL_STATUS_TIME.seconds)
    loaded = read_count(answer, "default_generation_settings", "n_ctx") or read_count(
        answer, "n_ctx"
    )
    return LocalContext(
        loaded, remedy=f"Start llama-server with a longer context: `-c {ADVISED_CONTEXT_TOKENS}`."
    )


async def _read_from_model_list(url: str, model: str) -> LocalContext:
    """Read the context from the list of models, where vLLM and SGLang state it."""
    answer = await request_json(join_url(url, "/models"), None, LOCAL_STATUS_TIME.seconds)
    lengths = (
        read_count(each, "max_model_len")
        for each in list_objects(answer.get("data"))
        if each.get("id") == model
    )
    remedy = (
        f"Start the server with a longer context: `--max-model-len {ADVISED_CONTEXT_TOKENS}` (vLLM), "
        f"`--context-length {ADVISED_CONTEXT_TOKENS}` (SGLang)."
    )
    return LocalContext(next(lengths, 0), remedy=remedy)


async def _read_docker(url: str, model: str) -> LocalContext:
    """Return the remedy only: Docker Model Runner does not state its context,
    and refuses longer requests by itself.
    """
    del url
    return LocalContext(
        remedy=f"Configure a longer context: `docker model configure --context-size {ADVISED_CONTEXT_TOKENS} {model}`."
    )


CONTEXT_READERS: dict[str, ContextReader] = {
    "ollama": _read_ollama,
    "lmstudio": _read_lmstudio,
    "llama.cpp": _read_llama_cpp,
    "vllm": _read_from_model_list,
    "sglang": _read_from_model_list,
    "docker-model-runner": _read_docker,
}
"""By provider id."""
SERVERS_BY_PORT = {11434: "ollama", 1234: "lmstudio"}
"""Default ports, to recognise servers that have another name in the configuration."""


def find_context_reader(provider_id: str, url: str) -> ContextReader | None:
    """Return the reader for a provider's local server; None: unknown server."""
    return CONTEXT_READERS.get(identify_server(provider_id, url))


def identify_server(provider_id: str, url: str) -> str:
    """Return which server a provider is, as a key of CONTEXT_READERS; empty: unknown.

    Names of the user's own are recognised too, such as `llamacpp`, `lm-studio` or `vllm-coder`.
    """
    letters = _strip_punctuation(provider_id)
    by_name = next((name for name in CONTEXT_READERS if _strip_punctuation(name) in letters), "")
    return by_name or SERVERS_BY_PORT.get(urlsplit(url).port or 0, "")


def _strip_punctuation(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def get_server_root(url: str) -> str:
    """Return the scheme and host of a base URL, under which a server has its own API."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _choose_advised_context(max_tokens: int) -> int:
    """Return the context to advise for a model whose maximum is `max_tokens` (0: unknown)."""
    return min(max_tokens, ADVISED_CONTEXT_TOKENS) if max_tokens else ADVISED_CONTEXT_TOKENS


class LoadResult(NamedTuple):
    """The model's name for further requests, and the context that it is loaded with in tokens;
    0: loading failed.
    """

    model: str
    loaded_tokens: int


ContextIncrease = Callable[[str, str, int], Awaitable[LoadResult]]
"""Takes the base URL of the server, the name of the model,
and the tokens that its context should have.
"""


async def _increase_ollama(url: str, model: str, tokens: int) -> LoadResult:
    """Create a model with `tokens` of context and the files of `model`: a chat completion
    can't set the context.
    """
    root, name = get_server_root(url), name_derived_model(model, tokens)
    body = {"model": name, "from": model, "parameters": {"num_ctx": tokens}, "stream": False}
    if (await request_json(f"{root}/api/create", body, LOCAL_STATUS_TIME.seconds)).get(
        "status"
    ) != "success":
        return LoadResult(model, 0)
    # Without a prompt this only loads the model.
    await request_json(f"{root}/api/generate", {"model": name}, LOCAL_LOAD_TIME.seconds)
    return LoadResult(name, await read_loaded_context(root, name))


def name_derived_model(model: str, tokens: int) -> str:
    """Return the name of Ollama's model that is `model` with another context, such as
    `codeloop/qwen3:8b-32768`.
    """
    # `hf.co/user/model:Q4` has slashes, and a registry may have a port: the tag is
    # what follows the last colon.
    path, _, tag = model.rpartition(":") if re.search(r":[^/]*$", model) else (model, "", "latest")
    return f"{DERIVED_PREFIX}{re.sub(r'[/:]', '-', path)}:{tag}-{tokens}"


async def _increase_lmstudio(url: str, model: str, tokens: int) -> LoadResult:
    """Load the model again with `tokens` of context;
    if that fails, with the context that it had before.
    """
    root = get_server_root(url)
    rows = list_objects(
        (await request_json(f"{root}/api/v1/models", None, LOCAL_STATUS_TIME.seconds)).get("models")
    )
    row = next(
        (each for each in rows if model in {read_text(each.get("key")), *_list_instance_ids(each)}),
        None,
    )
    if row is None:
        return LoadResult(model, 0)
    contexts_before = [
        read_count(each, "config", "context_length")
        for each in list_objects(row.get("loaded_instances"))
    ]
    # Loading it a second time would take the memory twice.
    for instance in _list_instance_ids(row):
        await request_json(
            f"{root}/api/v1/models/unload", {"instance_id": instance}, LOCAL_LOAD_TIME.seconds
        )
    result = await _load_lmstudio(root, read_text(row.get("key")), tokens)
    if not result.loaded_tokens and contexts_before:
        await _load_lmstudio(root, read_text(row.get("key")), max(contexts_before))
    return result


async def _load_lmstudio(root: str, key: str, tokens: int) -> LoadResult:
    body = {"model": key, "context_length": tokens, "echo_load_config": True}
    answer = await request_json(f"{root}/api/v1/models/load", body, LOCAL_LOAD_TIME.seconds)
    return LoadResult(
        read_text(answer.get("instance_id")) or key,
        read_count(answer, "load_config", "context_length"),
    )


def _list_instance_ids(row: dict[str, object]) -> list[str]:
    return [read_text(each.get("id")) for each in list_objects(row.get("loaded_instances"))]


CONTEXT_INCREASES: dict[str, ContextIncrease] = {
    "ollama": _increase_ollama,
    "lmstudio": _increase_lmstudio,
}
"""By provider id; other servers keep the context that they were started with."""


def find_context_increase(provider_id: str, url: str) -> ContextIncrease | None:
    """Return the function that has a provider's local server give a model more context;
    None: the server can't.
    """
    return CONTEXT_INCREASES.get(identify_server(provider_id, url))
