"""The hook `config`: asks extensions for changes of the configuration, and caches them,
so that no start waits.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from codeloop.config.files import read_text, write_private
from codeloop.config.load import LoadedConfig
from codeloop.config.redact import redact_config
from codeloop.config.sources import Layer
from codeloop.extend.hooks.hooks import Hooks
from codeloop.kit.jsonc import Document, is_object
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES
from codeloop.schema.wire import JSON

CONFIG_HOOK = "config"
# Part of the key of a cached answer: a new format makes the old ones unused.
_FORMAT_VERSION = 1
# Each change of the configuration has an answer of its own; the oldest ones are removed.
_MAX_CACHED_ANSWERS = 50


def read_cached_answer(
    folder: Path, loaded: LoadedConfig, extensions: Iterable[str], base: Path
) -> tuple[Path, Layer | None]:
    """Return the cache file of the answer for a configuration, and its layer."""
    file = get_answer_path(folder, loaded, extensions)
    return file, read_layer(file, base)


def get_answer_path(folder: Path, loaded: LoadedConfig, extensions: Iterable[str]) -> Path:
    """Return the cache file of the answer for a configuration.

    `extensions`: names and digests of the answering ones.
    """
    key_parts = msgspec.json.encode(
        (_FORMAT_VERSION, redact_config(loaded, ""), sorted(extensions)), order="deterministic"
    )
    return folder / f"{hashlib.sha256(key_parts).hexdigest()}.json"


def read_layer(file: Path, base: Path) -> Layer | None:
    """Return the cached layer of extensions' changes; None: not asked yet, or no changes."""
    try:
        text = read_text(file, CONFIG_BYTES.value)
        values: object = msgspec.json.decode(text) if text else None
    except (CodeloopError, msgspec.DecodeError):
        return None
    if not is_object(values) or not values:
        return None
    return Layer("extensions", "the hook `config` of extensions", base, Document("", values))


async def ask_extensions(hooks: Hooks, loaded: LoadedConfig, file: Path) -> JSON:
    """Ask extensions for their changes of the configuration, without showing secrets,
    and return them.

    They are cached, unless an extension failed. Raises OSError if caching fails.
    """
    failures = hooks.failures
    # Through JSON: extensions get plain values, and compare with what they return.
    before = msgspec.json.decode(msgspec.json.encode(redact_config(loaded, "")))
    # Only the differences are cached: the rest would freeze the user's own later changes.
    config_changes = find_differences(before, await hooks.run(CONFIG_HOOK, {}, before))
    # With a failed extension the answer is incomplete, so it is asked for again next time.
    if hooks.failures == failures:
        write_private(file, msgspec.json.encode(config_changes).decode())
        for old in sorted(file.parent.glob("*.json"), key=lambda each: each.stat().st_mtime)[
            :-_MAX_CACHED_ANSWERS
        ]:
            old.unlink(missing_ok=True)
    return config_changes


def find_differences(before: JSON, after: JSON) -> JSON:
    """Return the part of an object that is new or different."""
    differences: JSON = {}
    for key, value in after.items():
        old = before.get(key)
        if is_object(value) and is_object(old):
            if inner := find_differences(old, value):
                differences[key] = inner
        elif key not in before or value != old:
            differences[key] = value
    return differences
