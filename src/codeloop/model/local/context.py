"""The context length that a local server gives a model, by default often less than the model supports."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from codeloop.model.catalog.local_servers import ask_json
from codeloop.model.wire.response import count, is_json_object, items, text
from codeloop.schema.limits import LOCAL_ASK, LOCAL_LOAD

ENOUGH = 32_768
"""Tokens; what is advised where the model can take so many."""


class LocalContext(NamedTuple):
    """Tokens that a model has been loaded with, and that it could take; 0: unknown. `remedy`: how to give it more."""

    loaded: int = 0
    most: int = 0
    remedy: str = ""


Reader = Callable[[str, str], Awaitable[LocalContext]]
"""Takes the base URL of the server and the name of the model."""


async def _read_ollama(url: str, model: str) -> LocalContext:
    """Ollama silently truncates long requests at the front; only a loaded model has a length."""
    root = root_of(url)
    shown = await ask_json(f"{root}/api/show", {"model": model}, LOCAL_ASK.seconds)
    details = shown.get("model_info")
    lengths = [name for name in details if name.endswith(".context_length")] if is_json_object(details) else []
    most = max((count(shown, "model_info", name) for name in lengths), default=0)
    loaded = await find_loaded(root, model)
    if not loaded and shown:
        await ask_json(f"{root}/api/generate", {"model": model}, LOCAL_LOAD.seconds)  # no prompt: it is loaded
        loaded = await find_loaded(root, model)
    advised = _advised_window(most)
    remedy = (
        f"Start Ollama with a longer context: `OLLAMA_CONTEXT_LENGTH={advised} ollama serve` "
        "(in its app: Settings, Context length)."
    )
    return LocalContext(loaded, most if loaded else 0, remedy)


async def find_loaded(root: str, model: str) -> int:
    """Return the tokens of context that Ollama has loaded a model with; 0: it has not."""
    running = await ask_json(f"{root}/api/ps", None, LOCAL_ASK.seconds)
    names = {model, f"{model}:latest"}
    rows = (each for each in items(running.get("models")) if {text(each.get("name")), text(each.get("model"))} & names)
    return next((count(each, "context_length") for each in rows), 0)


async def _read_lmstudio(url: str, model: str) -> LocalContext:
    answer = await ask_json(f"{root_of(url)}/api/v0/models/{model}", None, LOCAL_ASK.seconds)
    most = count(answer, "max_context_length")
    remedy = f"Load it with a longer context: `lms load {model} --context-length {_advised_window(most)}`."
    return LocalContext(count(answer, "loaded_context_length"), most, remedy)


async def _read_llama_cpp(url: str, model: str) -> LocalContext:
    del model  # one server serves one
    answer = await ask_json(f"{root_of(url)}/props", None, LOCAL_ASK.seconds)
    loaded = count(answer, "default_generation_settings", "n_ctx") or count(answer, "n_ctx")
    return LocalContext(loaded, 0, f"Start llama-server with a longer context: `-c {ENOUGH}`.")


async def _read_listed(url: str, model: str) -> LocalContext:
    """VLLM and SGLang say it in their list of models."""
    answer = await ask_json(f"{url}/models", None, LOCAL_ASK.seconds)
    lengths = (count(each, "max_model_len") for each in items(answer.get("data")) if each.get("id") == model)
    remedy = (
        f"Start the server with a longer context: `--max-model-len {ENOUGH}` (vLLM), "
        f"`--context-length {ENOUGH}` (SGLang)."
    )
    return LocalContext(next(lengths, 0), 0, remedy)


async def _read_docker(url: str, model: str) -> LocalContext:
    """Docker Model Runner does not say it, and refuses what is longer."""
    del url
    return LocalContext(0, 0, f"Configure a longer context: `docker model configure --context-size {ENOUGH} {model}`.")


READERS: dict[str, Reader] = {
    "ollama": _read_ollama,
    "lmstudio": _read_lmstudio,
    "llama.cpp": _read_llama_cpp,
    "vllm": _read_listed,
    "sglang": _read_listed,
    "docker-model-runner": _read_docker,
}
"""By provider id."""
PORTS = {11434: "ollama", 1234: "lmstudio"}
"""Servers under other names in the configuration, by the port that is theirs."""


def reader_of(provider_id: str, url: str) -> Reader | None:
    """Return the reader for a provider's local server; None: unknown server."""
    return READERS.get(server_of(provider_id, url))


def server_of(provider_id: str, url: str) -> str:
    """Return which server a provider is, by a key of READERS; empty: unknown.

    A name of the user's own tells as well, such as `llamacpp`, `lm-studio` or `vllm-coder`.
    """
    letters = _letters(provider_id)
    by_name = next((name for name in READERS if _letters(name) in letters), "")
    return by_name or PORTS.get(urlsplit(url).port or 0, "")


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def root_of(url: str) -> str:
    """Return the address of a server above its base URL of chat completions."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _advised_window(most: int) -> int:
    return min(most, ENOUGH) if most else ENOUGH
