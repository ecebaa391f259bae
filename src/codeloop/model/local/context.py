"""The context length that a local server gives a model, by default often less than the model supports."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from codeloop.model.catalog.local_servers import ask_json
from codeloop.model.wire.response import count, is_json_object, items, text
from codeloop.schema.limits import LOCAL_ASK, LOCAL_LOAD

ENOUGH = 32_768
"""Tokens; the context that users are advised to give a model that can take it."""


class LocalContext(NamedTuple):
    """Tokens that a model is loaded with, and the most that it can take; 0: unknown. `remedy`: how to give it more."""

    loaded: int = 0
    most: int = 0
    remedy: str = ""


Reader = Callable[[str, str], Awaitable[LocalContext]]
"""Takes the base URL of the server and the name of the model."""


async def _read_ollama(url: str, model: str) -> LocalContext:
    """Ask Ollama, which silently cuts the beginning off long requests; only a loaded model has a length."""
    root = strip_path(url)
    answer = await ask_json(f"{root}/api/show", {"model": model}, LOCAL_ASK.seconds)
    details = answer.get("model_info")
    lengths = [name for name in details if name.endswith(".context_length")] if is_json_object(details) else []
    most = max((count(answer, "model_info", name) for name in lengths), default=0)
    loaded = await read_loaded_context(root, model)
    if not loaded and answer:
        # Without a prompt this only loads the model.
        await ask_json(f"{root}/api/generate", {"model": model}, LOCAL_LOAD.seconds)
        loaded = await read_loaded_context(root, model)
    window = _choose_window(most)
    remedy = (
        f"Start Ollama with a longer context: `OLLAMA_CONTEXT_LENGTH={window} ollama serve` "
        "(in its app: Settings, Context length)."
    )
    return LocalContext(loaded, most if loaded else 0, remedy)


async def read_loaded_context(root: str, model: str) -> int:
    """Return the tokens of context that Ollama has loaded a model with; 0: it is not loaded."""
    running = await ask_json(f"{root}/api/ps", None, LOCAL_ASK.seconds)
    names = {model, f"{model}:latest"}
    rows = (each for each in items(running.get("models")) if {text(each.get("name")), text(each.get("model"))} & names)
    return next((count(each, "context_length") for each in rows), 0)


async def _read_lmstudio(url: str, model: str) -> LocalContext:
    answer = await ask_json(f"{strip_path(url)}/api/v0/models/{model}", None, LOCAL_ASK.seconds)
    most = count(answer, "max_context_length")
    remedy = f"Load it with a longer context: `lms load {model} --context-length {_choose_window(most)}`."
    return LocalContext(count(answer, "loaded_context_length"), most, remedy)


async def _read_llama_cpp(url: str, model: str) -> LocalContext:
    del model  # one server serves one
    answer = await ask_json(f"{strip_path(url)}/props", None, LOCAL_ASK.seconds)
    loaded = count(answer, "default_generation_settings", "n_ctx") or count(answer, "n_ctx")
    return LocalContext(loaded, 0, f"Start llama-server with a longer context: `-c {ENOUGH}`.")


async def _read_from_model_list(url: str, model: str) -> LocalContext:
    """Read the context from the list of models, where vLLM and SGLang say it."""
    answer = await ask_json(f"{url}/models", None, LOCAL_ASK.seconds)
    lengths = (count(each, "max_model_len") for each in items(answer.get("data")) if each.get("id") == model)
    remedy = (
        f"Start the server with a longer context: `--max-model-len {ENOUGH}` (vLLM), "
        f"`--context-length {ENOUGH}` (SGLang)."
    )
    return LocalContext(next(lengths, 0), 0, remedy)


async def _read_docker(url: str, model: str) -> LocalContext:
    """Return the remedy only: Docker Model Runner does not say its context, and refuses longer requests by itself."""
    del url
    return LocalContext(0, 0, f"Configure a longer context: `docker model configure --context-size {ENOUGH} {model}`.")


READERS: dict[str, Reader] = {
    "ollama": _read_ollama,
    "lmstudio": _read_lmstudio,
    "llama.cpp": _read_llama_cpp,
    "vllm": _read_from_model_list,
    "sglang": _read_from_model_list,
    "docker-model-runner": _read_docker,
}
"""By provider id."""
PORTS = {11434: "ollama", 1234: "lmstudio"}
"""Default ports, by which servers are recognised that have another name in the configuration."""


def find_reader(provider_id: str, url: str) -> Reader | None:
    """Return the reader for a provider's local server; None: unknown server."""
    return READERS.get(identify_server(provider_id, url))


def identify_server(provider_id: str, url: str) -> str:
    """Return which server a provider is, as a key of READERS; empty: unknown.

    Names of the user's own are recognised too, such as `llamacpp`, `lm-studio` or `vllm-coder`.
    """
    letters = _strip_punctuation(provider_id)
    by_name = next((name for name in READERS if _strip_punctuation(name) in letters), "")
    return by_name or PORTS.get(urlsplit(url).port or 0, "")


def _strip_punctuation(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def strip_path(url: str) -> str:
    """Return the scheme and host of a base URL, under which a server has its own API."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _choose_window(most: int) -> int:
    return min(most, ENOUGH) if most else ENOUGH
