"""The system prompt: the agent's role, its environment, and the project's instructions.

Small models get a short one, and few tools; they are told by the size in their names.
"""

import os
import re
from datetime import datetime
from pathlib import Path

from codeloop.agent.engine import Engine
from codeloop.kit.wildcard import matches
from codeloop.model.chat import ModelInfo
from codeloop.schema.api.agents import Agent
from codeloop.schema.installation import check_package_file
from codeloop.schema.message import Session
from codeloop.workspace.project_facts import describe_project

MAX_SMALL_BILLIONS = 9.0
"""Billions of parameters up to which a model is small."""
SMALL_FAMILIES = (
    "*gemma-3n*",
    "*gemma3n*",
    "*phi-3-mini*",
    "*phi-4-mini*",
    "*phi4-mini*",
    "*smollm*",
    "*tinyllama*",
)
"""Wildcards over small models whose names contain no size."""
# The size in a name, such as `qwen3:4b` or `1.5b`;
# not `a3b`, the active part of a mixture of experts.
_BILLIONS_PATTERN = r"(?<![a-z0-9.])(\d{1,4}(?:\.\d+)?)b(?![a-z0-9])"
TOOLS_NOT_FOR_SMALL_MODELS = frozenset(
    (
        *("apply_patch", "batch", "list", "lsp", "multiedit", "question", "task", "task_output"),
        *("todoread", "todowrite", "webfetch"),
    )
)
"""Tools that small models are not offered: redundant or too complex for them."""


def is_small(info: ModelInfo) -> bool:
    """Return whether a model is small: as configured, else by the size in its name,
    or by its family.
    """
    if info.small is not None:
        return info.small
    name = (info.api_id or info.id).lower()
    sizes = [float(size) for size in re.findall(_BILLIONS_PATTERN, name)]
    if sizes:
        return max(sizes) <= MAX_SMALL_BILLIONS
    return any(matches(name, pattern) for pattern in SMALL_FAMILIES)


SAMPLING_AGENT = "sampling"
"""The agent that answers MCP servers: its output goes to them, so it gets no project facts."""
PROMPT_FOLDER = Path(__file__).with_name("prompts")
AGENTS_WITH_PROMPT = frozenset(("plan", "general", "explore"))
"""Built-in agents with a prompt of their own; every other agent without one gets that of build,
or `small`.
"""


def make_system_prompt(engine: Engine, session: Session, agent: Agent, info: ModelInfo) -> str:
    """Build the system prompt. For an agent and a model of a session,
    it changes only with the files it quotes.
    """
    if agent.native and agent.name == SAMPLING_AGENT and agent.prompt is None:
        return read_prompt(SAMPLING_AGENT).strip()
    default_prompt = "small" if is_small(info) else "build"
    base = agent.prompt or read_prompt(
        agent.name if agent.native and agent.name in AGENTS_WITH_PROMPT else default_prompt
    )
    blocks = [
        base.strip(),
        read_prompt("shared").strip(),
        make_environment_block(engine, session, info),
    ]
    blocks += [
        f"Instructions from {path}:\n{text.strip()}" for path, text in engine.read_instructions()
    ]
    return "\n\n".join(blocks)


def make_environment_block(engine: Engine, session: Session, info: ModelInfo) -> str:
    """Describe the machine, project and date: the same text for all requests of a session."""
    # The day when the session began: a date that changes would break the prompt cache at midnight.
    day = datetime.fromtimestamp(session.time.created / 1000).astimezone()
    workspace = engine.workspace
    lines = [
        f"Working directory: {workspace.directory}",
        *(
            [f"Top of the work tree: {workspace.root}"]
            if workspace.root != workspace.directory
            else []
        ),
        f"Platform: {os.uname().sysname} {os.uname().machine}",
        *([workspace.sandbox_note] if workspace.sandbox_note else []),
        f"Date: {day:%a %d %b %Y}",
        f"Model: {info.ref}",
        *_find_or_store_facts(engine, session).splitlines(),
    ]
    return "<env>\n" + "\n".join(lines) + "\n</env>"


def _find_or_store_facts(engine: Engine, session: Session) -> str:
    """Return the facts about the project as they were, and were stored,
    at the session's first request.

    A subagent gets its parent's.
    """
    while (
        session.parent_id is not None
        and (parent := engine.store.find_session(session.parent_id)) is not None
    ):
        session = parent
    facts = engine.store.facts.find(session.id)
    if facts is None:
        workspace = engine.workspace
        engine.store.facts.add(
            session.id, describe_project(workspace.root, workspace.directory, workspace.environment)
        )
        facts = engine.store.facts.find(session.id)
    return facts or ""


def read_prompt(name: str) -> str:
    """Return one of the package's own prompts by its file name without `.md`."""
    return check_package_file(PROMPT_FOLDER / f"{name}.md").read_text(encoding="utf-8")
