"""The text of a new agent's page, as `codeloop agent create` writes it."""

import json


def make_agent_page(description: str, mode: str) -> str:
    """Return the text of a new agent's page: the required keys,
    and the optional ones as comments.
    """
    return f"""\
---
description: {json.dumps(description, ensure_ascii=False)}
# primary: you talk to it; subagent: other agents hand it work; all: both
mode: {mode}
# model: provider/model       (without: the model of the session)
# temperature: 0.2
# steps: 20                   (maximum number of requests a turn)
# permission:                 (added to your rules; the last match counts)
#   edit: deny
#   bash:
#     "*": ask
#     "git log *": allow
---
Describe the agent here: its role, how it works and what it reports. This text replaces the built-in prompt.
"""
