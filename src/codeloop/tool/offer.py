"""Which of the tools for one job suit which model, as rows of data."""

from codeloop.kit.wildcard import matches

PATCH_MODELS = ("gpt-5*", "*/gpt-5*", "*codex*")
"""Models that were trained to change files by patches; all others edit and write."""

PATCH_TOOLS = frozenset({"apply_patch"})
EDIT_TOOLS = frozenset({"edit", "multiedit", "write"})


def unsuited_tools(model: str) -> frozenset[str]:
    """Give the tools that a model (by its id) is not offered because another does the same job better for it."""
    return EDIT_TOOLS if any(matches(model, pattern) for pattern in PATCH_MODELS) else PATCH_TOOLS
