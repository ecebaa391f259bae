"""Where a setting is written, in words, for errors about its value. The value itself is never shown."""

import re

from codeloop.config.layers import dotted
from codeloop.config.load import Loaded
from codeloop.config.substitute import REFERENCE
from codeloop.kit.jsonc import Path as Keys
from codeloop.kit.jsonc import is_list, is_object

_LAYERS = {
    "global": "your global configuration",
    "project": "this project's configuration",
    "environment": "configuration from the environment",
    "--config": "the file of --config",
}


def written(loaded: Loaded, keys: Keys) -> tuple[str, str] | None:
    """Return where a setting comes from and what to do to change it; None when no file does."""
    origin = loaded.provenance.get(dotted(keys))
    if origin is None or origin.layer.name == "command line":
        return None
    layer = origin.layer
    place = f"{origin} ({_LAYERS.get(layer.name, layer.name)})"
    references: list[re.Match[str]] = list(REFERENCE.finditer(_text(layer.raw, origin.keys)))
    if not references:
        return f"`{keys[-1]}` at {place}", "Correct it there."
    names = [found[2].strip() for found in references]
    shown = " and ".join(f"{{{found[1]}:{name}}}" for found, name in zip(references, names, strict=True))
    if references[0][1] == "env":
        where = f"the environment variable {names[0]}"
        return f"{where}, by `{shown}` at {place}", f"Set {names[0]} to another one and start codeloop again."
    return f"the file {names[0]}, by `{shown}` at {place}", "Put another one into that file."


def _text(value: object, keys: Keys) -> str:
    """Return the text that stands at `keys`, the empty one when there is none."""
    for key in keys:
        if is_object(value) and isinstance(key, str):
            value = value.get(key)
        elif is_list(value) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return ""
    return value if isinstance(value, str) else ""
