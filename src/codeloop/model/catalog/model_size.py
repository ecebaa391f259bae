"""Tells small models from others by the size in their names; they get few tools and a short prompt."""

import re

from codeloop.kit.wildcard import matches
from codeloop.model.chat import ModelInfo

MAX_SMALL_BILLIONS = 9.0
"""Billions of parameters up to which a model is small."""
SMALL_FAMILIES = ("*gemma-3n*", "*gemma3n*", "*phi-3-mini*", "*phi-4-mini*", "*phi4-mini*", "*smollm*", "*tinyllama*")
"""Wildcards over small models whose names contain no size."""
# The size in a name, such as `qwen3:4b` or `1.5b`; not `a3b`, the active part of a mixture of experts.
_BILLIONS_PATTERN = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d+)?)b(?![a-z0-9])")


def is_small(info: ModelInfo) -> bool:
    """Return whether a model is small: as configured, else by the size in its name."""
    if info.small is not None:
        return info.small
    name = (info.api_id or info.id).lower()
    sizes = [float(size) for size in _BILLIONS_PATTERN.findall(name)]
    if sizes:
        return max(sizes) <= MAX_SMALL_BILLIONS
    return any(matches(name, pattern) for pattern in SMALL_FAMILIES)
