"""Which prompts wait: those that no answer has taken up."""

from typing import Any

import pytest

from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, Entry, list_queued_prompts
from tests.store.states import assistant, session, user

SESSION = session()


def view(shape: str) -> Conversation:
    """Return a conversation: `u` is a prompt, `a` an answer to the last prompt,
    `b` one to the prompt before that.
    """
    entries: list[Entry] = []
    prompts: list[Any] = []
    for at, kind in enumerate(shape, 1):
        if kind == "u":
            prompts.append(user(SESSION.id, at=at))
            entries.append(Entry(prompts[-1]))
        else:
            parent = prompts[-1 if kind == "a" else -2]
            entries.append(
                Entry(replace(assistant(SESSION.id, parent.id, at=at), parent_id=parent.id))
            )
    return Conversation(SESSION, tuple(entries))


@pytest.mark.parametrize(
    ("shape", "waiting"),
    [
        ("", []),
        ("u", [0]),
        ("uu", [0, 1]),
        ("ua", []),
        ("uau", [2]),
        ("uauu", [2, 3]),
        ("uaua", []),
        ("uaub", [2]),
        ("uauua", []),
        ("uaaau", [4]),
    ],
)
def test_prompts_behind_the_last_one_that_was_answered_wait(shape: str, waiting: list[int]) -> None:
    conversation = view(shape)
    assert list(list_queued_prompts(conversation)) == [
        conversation.entries[place] for place in waiting
    ]
