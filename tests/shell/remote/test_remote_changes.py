"""What acts on other machines and services is asked about in `auto`, sandboxed or not,
however it is spelled.
"""

from pathlib import Path

import pytest

from codeloop.permission.defaults import make_base_rules
from codeloop.permission.rules import Verdict, decide
from codeloop.schema.permission import Action, PermissionRule
from codeloop.schema.wire import replace
from codeloop.shell.analysis import analyse, make_need

_ACTING, _OTHERS = (Path(__file__).parent / "lines.txt").read_text().split("# These do not.\n")
ACTING, OTHERS = (
    _ACTING.strip().splitlines()[1:],
    [*_OTHERS.splitlines(), "cat <<'E'\ngit push\nE\n"],
)
BASE = make_base_rules("auto", Path("/scratch"))


def judge(line: str, *rules: tuple[str, Action]) -> Verdict:
    """Decide about a line that would run in a sandbox."""
    need = replace(make_need(line, analyse(line)), traits=("sandboxed",))
    return decide(
        need, BASE, tuple(PermissionRule(permission="bash", pattern=p, action=a) for p, a in rules)
    )


@pytest.mark.parametrize("line", ACTING)
def test_what_acts_on_others_is_asked_about_though_it_is_sandboxed(line: str) -> None:
    assert judge(line).action == "ask"


@pytest.mark.parametrize("line", OTHERS)
def test_everyday_work_and_dry_runs_need_no_question(line: str) -> None:
    assert judge(line).action == "allow"


def test_the_rules_of_the_user_win() -> None:
    line = "git add . && git push origin main"
    asked = judge(line)
    assert (asked.patterns, asked.rule and asked.rule.pattern) == (
        ("git push origin main",),
        "<remote>",
    )
    assert judge(line, ("git push *", "allow")).action == "allow"
    assert judge(line, ("*", "allow")).action == "allow"
    assert judge(line, ("<sandboxed>", "allow")).action == "allow"
    assert judge("git push $x", ("git push *", "allow")).action == "ask", (
        "what is allowed must be certain"
    )
    assert judge(line, ("git push *", "allow"), ("<remote>", "deny")).action == "deny"
    assert judge("echo a", ("<remote>", "deny")).action == "allow"
    assert judge("git log $x", ("<remote>", "deny")).action == "allow"
    assert judge("$x push", ("<remote>", "deny")).action == "deny"


def test_what_is_too_much_to_read_is_asked_about_when_an_act_stands_in_it() -> None:
    many = "\n".join(f"echo {number}" for number in range(200))
    assert judge(f"{many}\ngit push").action == "ask"
    assert judge(many).action == "allow"
