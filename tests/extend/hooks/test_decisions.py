"""What a hook's exit code, output and matcher mean."""

import pytest

from codeloop.extend.hooks.configured.decision import decide_by_output
from codeloop.extend.hooks.configured.matchers import matches_name
from codeloop.extend.hooks.hooks import HookFailed

NOT_STARTED = [
    "/usr/bin/python3: can't open file '/x/guard.py': [Errno 2] No such file or directory",
    "sh: 0: cannot open guard.sh: No such file",
    'guard.sh: 2: Syntax error: end of file unexpected (expecting "then")',
    "guard.sh: line 2: syntax error: unexpected end of file",
    'Can\'t open perl script "guard.pl": No such file or directory',
    "error: Failed to fetch: `https://pypi.org/simple/x/`\n  Caused by: dns error",
    "Using Python 3.12\n  \u00d7 Failed to download `x==1`",
    "error: unexpected argument '--nosuch' found",
    "make: *** No rule to make target 'guard'.  Stop.",
    "usage: guard.py [-h]\nguard.py: error: unrecognized arguments: -x",
    "Usage: guard [OPTIONS]\nTry 'guard --help' for help.\n\nError: No such option: -x",
]
DECIDED = [
    "Not in this folder.",
    "",
    "guard.sh: line 3: jq: command not found\nBlocked: no jq",
    "make: *** [Makefile:2: lint] Error 1",
    "error: the tests must pass first",
    "grep: x: No such file or directory\nBlocked",
    "deploy.sh: line 3: syntax error near unexpected token `fi'",
    "Checked deploy.sh\nguard.sh: line 3: syntax error near unexpected token `fi'",
    "The lint failed:\nmake: *** No rule to make target 'x'.  Stop.",
    "usage: lint.py [-h]\nlint.py: error: unrecognized arguments: -x",
]


@pytest.mark.parametrize("errors", NOT_STARTED)
def test_a_program_that_could_not_start_has_not_refused(errors: str) -> None:
    with pytest.raises(HookFailed, match="could not start, so it has decided nothing"):
        decide_by_output(2, b"", errors, is_context=False, command="sh ~/'guard.sh' guard.py")


@pytest.mark.parametrize("errors", DECIDED)
def test_exit_code_2_of_a_program_that_ran_refuses(errors: str) -> None:
    decision = decide_by_output(2, b"", errors, is_context=False, command="sh guard.sh")
    assert decision.refusal_reason is not None


def test_a_program_that_printed_something_has_started() -> None:
    decision = decide_by_output(2, b"checked", NOT_STARTED[0], is_context=False)
    assert decision.refusal_reason == NOT_STARTED[0]


def test_a_byte_order_mark_before_json_is_passed_over() -> None:
    output = '\ufeff{"decision": "block", "reason": "no"}'.encode()
    assert decide_by_output(0, output, "", is_context=False).refusal_reason == "no"


@pytest.mark.parametrize(
    "matcher",
    ["Bash", "Bash|Write", "Bash | Write", "Bash,PowerShell", " Bash , Write ", "*", "", "Ba.*"],
)
def test_matchers_are_names_in_any_list_or_a_pattern(matcher: str) -> None:
    assert matches_name(matcher, ["Bash"])


@pytest.mark.parametrize("matcher", ["Write", "bash", "Write, Edit", "Bas", "ash"])
def test_matchers_of_other_names_do_not_match(matcher: str) -> None:
    assert not matches_name(matcher, ["Bash"])
