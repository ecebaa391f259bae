"""What is found out from a conversation, and when its next message counts as created."""

from codeloop.store.conversation import Conversation, Entry, choose_creation_time, find_last_text
from tests.store.states import assistant, session, text, user


def test_what_was_said_last_is_the_agents_and_never_the_prompt() -> None:
    asked = user("ses_a", at=1)
    silent = assistant("ses_a", asked.id, at=2, done=3)
    prompt = Entry(asked, (text(asked, "the prompt"),))
    assert find_last_text((prompt, Entry(silent))) == ""
    assert (
        find_last_text((prompt, Entry(silent, (text(silent, "done"), text(silent, "  "))), prompt))
        == "done"
    )


def test_a_further_message_comes_last_even_when_the_clock_has_stepped_back() -> None:
    conversation = Conversation(session(), (Entry(user("ses_a", at=1_000)),))
    assert choose_creation_time(conversation, 5) == 1_001
    assert choose_creation_time(conversation, 1_000) == 1_001
    assert choose_creation_time(conversation, 2_000) == 2_000
    assert choose_creation_time(Conversation(session(), ()), 7) == 7
