"""The model of the documentation's stories: a real server that answers each prompt as
a page's reader would see it.
"""

import json
from typing import Any

from tests.cli.program import is_prompt
from tests.support.answers import Answer, Call
from tests.support.http_connection import ReceivedRequest


def calls(tool: str, **arguments: Any) -> Answer:
    """Return an answer that makes one call."""
    return Answer(calls=(Call(tool, json.dumps(arguments), f"call_{tool}"),))


def bash(command: str) -> Answer:
    """Return an answer that runs a command."""
    return calls("bash", command=command, description="Runs it")


TESTS = bash("python3 -m unittest -q")
FIX = (
    TESTS,
    calls("read", filePath="calc.py"),
    calls("edit", filePath="calc.py", oldString="a - b", newString="a + b"),
    TESTS,
    Answer(text="Fixed: `add` subtracted. The tests pass."),
)
# A page may have the same thing done twice: then only this is left to change.
SPACED = calls("edit", filePath="calc.py", oldString="return ", newString="return  ")
TURNS: dict[str, tuple[Answer, ...]] = {
    "tests fail": FIX,
    "failing test": FIX,
    "nothing is left": (Answer(text="Nothing is left to do."),),
    "the page is shorter": (Answer(text="It is shorter now."),),
    "tests pass": FIX,
    "rename the function add": (
        bash("sed -i 's/add/plus/g' *.py"),
        Answer(text="Renamed in two files."),
    ),
    "push the branch": (bash("git push origin main"), Answer(text="A rule forbids it.")),
    "list the branches": (bash("git branch"), Answer(text="There is one.")),
    "look around": (
        Answer(text="I look.", reasoning="Let me see.", calls=bash("ls *.py").calls),
        Answer(status=400, body='{"error": {"message": "The service failed."}}'),
    ),
    "which notes": (calls("notes_list_notes"), Answer(text="Two: buy milk, and fix the roof.")),
    "left to do": (
        bash("grep -rn TODO ."),
        calls("StructuredOutput", tasks=["fix add", "write a test"], urgent=False),
    ),
    "who is on call": (calls("on_call"), Answer(text="Ada, until Friday.")),
    "shout hello": (calls("shout", text="hello"), Answer(text="It did.")),
    "weather in Oslo": (calls("weather", city="Oslo"), Answer(text="Sunny, they say.")),
    "hello": (bash("echo hello"), Answer(text="Hello.")),
}
"""What is answered to a prompt that holds the words, step by step;
the last answer serves all further steps.
"""
OTHER = (bash("git log --oneline -3"), Answer(text="Done."))
TITLE = Answer(text="A short title")
OVERLOADED = Answer(status=429, body="{}", headers={"retry-after": "0"})


class Model:
    """Answers by the latest prompt, and by how many answers its turn already holds."""

    def __init__(self) -> None:
        self._overloaded = False

    def __call__(self, received: ReceivedRequest) -> Answer:
        """Answer a request."""
        if b'"tools"' not in received.body:
            return TITLE
        messages = received.json["messages"]
        last = max(at for at, message in enumerate(messages) if is_prompt(message))
        prompt = json.dumps(messages[last], ensure_ascii=False)
        if "look around" in prompt and not self._overloaded:
            self._overloaded = True
            return OVERLOADED
        turn = next((turn for words, turn in TURNS.items() if words in prompt), OTHER)
        done = sum(message["role"] == "assistant" for message in messages[last:])
        answer = turn[min(done, len(turn) - 1)]
        is_fixed = b"a - b" not in received.body
        return SPACED if answer is FIX[2] and is_fixed else answer
