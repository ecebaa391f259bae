"""Commands of `hooks`: which tools a matcher is about, what scripts are shown,
what their output says.
"""

from pathlib import Path

import pytest

from codeloop.extend.hooks.configured.decision import HookDecision, decide_by_output
from codeloop.extend.hooks.configured.matchers import matches_call, matches_name
from codeloop.extend.hooks.configured.script_names import (
    convert_from_script_input,
    convert_to_script_inputs,
    list_script_names,
)
from codeloop.extend.hooks.hooks import HookFailed

WORK = Path("/p")


@pytest.mark.parametrize(
    ("matcher", "tool", "is_meant"),
    [
        ("", "bash", True),
        ("*", "bash", True),
        ("Bash", "bash", True),
        ("bash", "bash", True),
        ("Bas", "bash", False),
        ("Edit|Write", "write", True),
        ("Edit|Write", "edit", True),
        ("Edit|Write", "multiedit", True),
        ("Edit|Write", "apply_patch", True),
        ("Edit|Write", "read", False),
        ("Notebook.*|.*Edit", "multiedit", True),
        ("Web.*", "webfetch", True),
        ("Task", "task", True),
        ("Grep|Glob|LS", "list", True),
        ("Write", "rewrite", False),
        (".*", "custom", True),
        ("custom", "custom", True),
        ("(", "bash", False),
        ("mcp__.*", "bash", False),
    ],
)
def test_a_matcher_is_about_tools_by_either_name(matcher: str, tool: str, is_meant: bool) -> None:
    assert matches_name(matcher, list_script_names(tool)) is is_meant


@pytest.mark.parametrize("matcher", ["mcp__git__push", "mcp__git__.*", "git_push", "mcp__.*__push"])
def test_a_matcher_is_about_tools_of_mcp_servers(matcher: str) -> None:
    assert matches_name(matcher, list_script_names("git_push", ("git", "push")))
    assert not matches_name(matcher, list_script_names("other_push", ("other", "pull")))


@pytest.mark.parametrize(
    ("condition", "tool", "shown", "is_meant"),
    [
        ("", "bash", {"command": "ls"}, True),
        ("Bash", "bash", {"command": "ls"}, True),
        ("Bash", "read", {"file_path": "/p/a"}, False),
        ("Bash(git *)", "bash", {"command": "git push"}, True),
        ("Bash(git *)", "bash", {"command": "cd src && git push -f | cat"}, True),
        ("Bash(git *)", "bash", {"command": "ls git"}, False),
        ("Bash(git:*)", "bash", {"command": "git"}, True),
        ("Bash(git:*)", "bash", {"command": "gitk"}, False),
        ("Bash(rm *)", "bash", {"command": 'eval "$X"'}, True),
        ("Edit(*.py)", "edit", {"file_path": "/p/src/a.py"}, True),
        ("Edit(*.py)", "edit", {"file_path": "/p/src/a.js"}, False),
        ("Edit(src/*)", "write", {"file_path": "/p/src/a.py"}, False),
        ("Edit|Write(src/*)", "write", {"file_path": "/p/src/a.py"}, True),
        ("WebFetch(domain:example.com)", "webfetch", {"url": "https://example.com/a"}, True),
        (
            "WebFetch(domain:example.com)",
            "webfetch",
            {"url": "https://example.com.evil.org/"},
            False,
        ),
        ("WebFetch(domain:example.com)", "webfetch", {"url": "https://[example.com/"}, True),
        ("mcp__.*", "bash", {"command": "ls"}, False),
        ("Bash(ls", "bash", {"command": "pwd"}, True),
    ],
)
def test_a_condition_is_about_calls_and_about_all_where_it_can_not_tell(
    condition: str, tool: str, shown: dict[str, str], is_meant: bool
) -> None:
    assert matches_call(condition, list_script_names(tool), shown) is is_meant


def test_scripts_read_the_arguments_that_they_know() -> None:
    given = {"filePath": "src/a.py", "oldString": "a", "newString": "b", "replaceAll": True}
    (shown,) = convert_to_script_inputs("edit", given, WORK)
    assert shown == {
        "file_path": "/p/src/a.py",
        "old_string": "a",
        "new_string": "b",
        "replace_all": True,
    }
    assert convert_from_script_input("edit", {**shown, "new_string": "c"}) == {
        **given,
        "filePath": "/p/src/a.py",
        "newString": "c",
    }
    assert convert_to_script_inputs("custom", {"filePath": "x"}, WORK) == [{"filePath": "x"}]


def test_a_patch_is_shown_once_for_each_of_its_files() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n*** Delete File: .env\n*** End Patch"
    shown = convert_to_script_inputs("apply_patch", {"patchText": patch}, WORK)
    assert [each["file_path"] for each in shown] == ["/p/a.py", "/p/b.py", "/p/.env"]
    assert convert_to_script_inputs("apply_patch", {"patchText": "none"}, WORK) == [
        {"patch": "none"}
    ]


@pytest.mark.parametrize(
    ("code", "output", "errors", "wanted"),
    [
        (0, "", "", HookDecision()),
        (0, "chatter", "", HookDecision()),
        (2, "", "no\n", HookDecision(refusal_reason="no")),
        (2, "out", "", HookDecision(refusal_reason="out")),
        (0, '{"decision": "approve"}', "", HookDecision(permission="allow")),
        (0, '{"decision": "block", "reason": "r"}', "", HookDecision(refusal_reason="r")),
        (
            0,
            '{"continue": false, "stopReason": "s"}',
            "",
            HookDecision(refusal_reason="s", ends_turn=True),
        ),
        (0, '{"systemMessage": "m", "suppressOutput": true}', "", HookDecision(user_message="m")),
        (0, '{"unknown": {"a": 1}}', "", HookDecision()),
        (
            0,
            '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "r"}}',
            "",
            HookDecision(refusal_reason="r"),
        ),
        (
            0,
            '{"hookSpecificOutput": {"decision": {"behavior": "allow"}}}',
            "",
            HookDecision(permission="allow"),
        ),
        (
            0,
            '{"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "m", "interrupt": true}}}',
            "",
            HookDecision(refusal_reason="m", ends_turn=True),
        ),
        (
            0,
            '{"hookSpecificOutput": {"permissionDecision": "ask", "updatedInput": {"a": 1}, "additionalContext": "c"}}',
            "",
            HookDecision(permission="ask", updated_input={"a": 1}, context="c"),
        ),
    ],
)
def test_an_exit_code_or_json_is_a_decision(
    code: int, output: str, errors: str, wanted: HookDecision
) -> None:
    assert decide_by_output(code, output.encode(), errors, is_context=False) == wanted


def test_what_a_hook_prints_is_for_the_model_where_that_is_meant() -> None:
    assert decide_by_output(0, b"plain words\n", "", is_context=True).context == "plain words"
    assert decide_by_output(0, b"{not json", "", is_context=True).context == "{not json"


@pytest.mark.parametrize(
    ("code", "output", "says"),
    [
        (1, "", "exit code 1: no output"),
        (127, "", "exit code 127"),
        (-9, "", "exit code -9"),
        (0, '{"decision": 5}', "output is invalid"),
        (0, "{broken", "output is invalid"),
        (0, '{"hookSpecificOutput": {"permissionDecision": "maybe"}}', "output is invalid"),
    ],
)
def test_anything_else_is_a_failure(code: int, output: str, says: str) -> None:
    with pytest.raises(HookFailed, match=says):
        decide_by_output(code, output.encode(), "", is_context=False)


def test_control_characters_of_a_hook_are_left_out() -> None:
    assert decide_by_output(2, b"", "\x1b[31mno\x1b[0m", is_context=False).refusal_reason == "no"
