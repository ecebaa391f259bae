"""A chat-completions service that plays a piece of work: what it answers depends on the prompt,
and on how far it is.

python -m tests.e2e.model: prints its base URL, serves until it is stopped.
"""

import json
from dataclasses import replace
from typing import Any

from tests.support.answers import Answer, Call, Counts
from tests.support.http_connection import ReceivedRequest
from tests.support.model_server import ModelServer, run_model_server

DELTA_DELAY = 0.015
"""Seconds between two pieces of a streamed answer."""
SLOW_DELTA_DELAY = 0.1
"""The same, for an answer that is still coming while something else is done."""
WRONG_LINE = "return sum(prices) * count"
RIGHT_LINE = "return sum(price * count for price, count in zip(prices, counts))"
CART_SOURCE = f"""def total(prices, counts):
    count = len(counts)
    {WRONG_LINE}
"""
TEST_SOURCE = """import unittest

from cart import total


class TotalTest(unittest.TestCase):
    def test_each_price_has_its_count(self):
        self.assertEqual(total([2, 3], [1, 4]), 14)


unittest.main()
"""
ANSWER_TEXT = """The total was wrong because **one count** was used for all prices:

```python
return sum(price * count for price, count in zip(prices, counts))
```

- `cart.py` multiplies each price by *its* count now
- the test passes
"""
QUESTION = {
    "questions": [
        {
            "question": "How should half cents be rounded?",
            "header": "Rounding",
            "options": [
                {"label": "Half even", "description": "as banks do"},
                {"label": "Half up", "description": "as shops do"},
            ],
        }
    ]
}
CLOCK_COMMAND = "for n in $(seq 1 500); do echo tick-$n; sleep 0.2; done"
LOSS_COMMAND = "git stash -q -u; git reset -q --hard HEAD~1"
PLAN_TEXT = "# The total\n\n- round half even\n- no new tests\n"
TODO_LIST = [
    {"content": "Find out why the total is wrong", "status": "completed", "priority": "high"},
    {"content": "Mend cart.py", "status": "in_progress", "priority": "high"},
    {"content": "Run the tests", "status": "pending", "priority": "medium"},
]


def make_call(name: str, **arguments: Any) -> Call:
    """Return a call."""
    return Call(name, json.dumps(arguments), f"call_{name}")


STORY = Answer(text=" ".join(f"word-{n}" for n in range(1, 61)), deltas=0, delay=SLOW_DELTA_DELAY)
ANSWERS_BY_PROMPT: dict[str, tuple[Answer, ...]] = {
    "mend the total": (
        Answer(
            reasoning="The test tells what is expected. I read the code first.",
            text="I look at the code and the test.",
            calls=(
                make_call("read", filePath="cart.py"),
                make_call("grep", pattern="total", path="."),
            ),
        ),
        Answer(
            calls=(
                make_call("todowrite", todos=TODO_LIST),
                make_call("edit", filePath="cart.py", oldString=WRONG_LINE, newString=RIGHT_LINE),
            ),
        ),
        Answer(
            calls=(make_call("bash", command="python3 test_cart.py", description="Run the tests"),)
        ),
        Answer(text=ANSWER_TEXT, deltas=0),
    ),
    "ask me": (
        Answer(calls=(make_call("question", **QUESTION),)),
        Answer(text="Then it is rounded **half up**.", deltas=0),
    ),
    "tell a story": (STORY,),
    "tell a held story": (replace(STORY, stall_after=20),),
    # For who stops it: a busy machine may need many seconds for that.
    "tell a long story": (
        Answer(
            text=" ".join(f"word-{n}" for n in range(1, 1_201)), deltas=0, delay=SLOW_DELTA_DELAY
        ),
    ),
    "watch the clock": (
        Answer(
            calls=(
                make_call(
                    "bash", command=CLOCK_COMMAND, description="Tick", run_in_background=True
                ),
            )
        ),
        Answer(text="It ticks in the background."),
    ),
    "Go on where you were interrupted": (
        Answer(
            calls=(make_call("bash", command="python3 test_cart.py", description="Run the tests"),)
        ),
        Answer(text="It went on without a terminal."),
    ),
    "say one word": (Answer(text="Certainly."),),
    "mend it quietly": (
        Answer(
            calls=(
                make_call("edit", filePath="cart.py", oldString=WRONG_LINE, newString=RIGHT_LINE),
            )
        ),
        Answer(text="It is mended."),
    ),
    "claim without a deed": (
        Answer(calls=(make_call("read", filePath="cart.py"),)),
        Answer(text="Done. I changed cart.py and added a test. All tests pass."),
    ),
    "throw my work away": (
        Answer(calls=(make_call("bash", command=LOSS_COMMAND, description="Clean up"),)),
        Answer(text="Everything is finished and verified."),
    ),
    "say that it passes": (
        Answer(
            calls=(
                make_call("edit", filePath="cart.py", oldString=WRONG_LINE, newString="return 0"),
            )
        ),
        Answer(
            calls=(make_call("bash", command="python3 test_cart.py", description="Run the tests"),)
        ),
        Answer(text="The total is right now. All tests pass."),
    ),
    "write a plan": (
        Answer(calls=(make_call("write", filePath=".codeloop/plans/total.md", content=PLAN_TEXT),)),
        Answer(calls=(make_call("plan_exit"),)),
        Answer(calls=(make_call("plan_exit", answers=[{"thread": 1, "answer": "Half up now."}]),)),
        Answer(text="I plan on."),
    ),
}
"""What is answered to a prompt that holds these words: the first answer,
then one after each step's results.

One that stalls goes on when somebody has said `say one word` after it began.
"""
PROMPTS: list[str] = []
"""What was said until now."""


def choose(received: ReceivedRequest) -> Answer:
    """Return the next answer to the last thing that a person said."""
    body: dict[str, Any] = json.loads(received.body)
    if not body.get("tools"):
        return Answer(
            text="Telling a story"
            if "story" in json.dumps(body["messages"][-1])
            else "Mending the total"
        )
    messages = body["messages"]
    last = max(at for at, message in enumerate(messages) if message["role"] == "user")
    said, steps = (
        json.dumps(messages[last]["content"]),
        sum(m["role"] == "assistant" for m in messages[last:]),
    )
    answers = next(
        (answers for words, answers in ANSWERS_BY_PROMPT.items() if words in said),
        (Answer(text="Hello."),),
    )
    answer = answers[min(steps, len(answers) - 1)]
    PROMPTS.append(said)
    if answer.stall_after is not None:
        begun = len(PROMPTS)
        answer = replace(
            answer, until=lambda: any("say one word" in each for each in PROMPTS[begun:])
        )
    counts = Counts(input=4_000 + 600 * len(messages), output=120, cached=3_500)
    return replace(answer, delay=answer.delay or DELTA_DELAY, counts=counts)


if __name__ == "__main__":
    run_model_server(ModelServer(choose, record=False))
