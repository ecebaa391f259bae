"""The prompts of CI jobs: the files in `prompts/` with their placeholders filled in,
and threads as quotations.
"""

import re
import secrets
from pathlib import Path

from codeloop.schema.installation import check_package_file
from codeloop_automation.bounds import CI_THREAD
from codeloop_automation.ci.hosts.host import Thread

_PROMPTS = Path(__file__).with_name("prompts")


def read_prompt(name: str, **values: str) -> str:
    """Return the prompt of a file in `prompts/` with its placeholders filled in."""
    # One pass, so that a placeholder within a value stays as it is: a value may be anybody's text.
    text = check_package_file(_PROMPTS / f"{name}.md").read_text(encoding="utf-8")
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), text)


def quote_thread(thread: Thread) -> str:
    """Return the texts of a thread for a prompt, between two lines with a random mark;
    "" if there are none.
    """
    # Nobody can know the mark in advance, so no text of the thread can pretend to be a
    # part of the prompt around it.
    if not thread.title and not thread.texts:
        return ""
    # What codeloop's own account has written is known to it, or was written by a model.
    rows = [] if thread.is_own else [(thread.author, thread.body)]
    rows += [(row.author, row.text) for row in thread.texts]
    texts = "\n\n".join(
        f"{author or 'somebody'} wrote:\n{text.strip()}" for author, text in rows if text.strip()
    )
    text = f"Title: {thread.title}\n\n{texts}"
    if len(text) > CI_THREAD.value:
        # The beginning has the request, the end the latest comments.
        half = CI_THREAD.value // 2
        text = f"{text[:half]}\n[... {len(text) - 2 * half:,} characters are left out ...]\n{text[-half:]}"
    kind = "pull request" if thread.is_pull else "issue"
    return read_prompt(
        "thread", kind=f"{kind} {thread.number}", mark=secrets.token_hex(8), text=text
    )
