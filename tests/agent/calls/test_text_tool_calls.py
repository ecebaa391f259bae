"""Calls that models write as text, each in the form of its family."""

import msgspec
import pytest

from codeloop.agent.calls.text_tool_calls import find_text_calls

TOOLS = frozenset({"read", "bash"})
READ = {"filePath": "a.py"}
JSON = '{"name": "read", "arguments": {"filePath": "a.py"}}'


def wide(text: str) -> str:
    """Return a text with the bars of DeepSeek's tokens."""
    return text.replace("|", "\uff5c")


FORMS = {
    "Hermes": f"<tool_call>\n{JSON}\n</tool_call>",
    "Qwen, not closed": f"<tool_call>\n{JSON}",
    "Qwen coder": "<tool_call>\n<function=read>\n<parameter=filePath>\na.py\n</parameter>\n</function>\n</tool_call>",
    "Llama": '<function=read>{"filePath": "a.py"}</function>',
    "Llama, tagged": '<|python_tag|>{"name": "read", "parameters": {"filePath": "a.py"}}',
    "Mistral": f"[TOOL_CALLS] [{JSON}]",
    "Mistral, new": '[TOOL_CALLS]read[ARGS]{"filePath": "a.py"}',
    "DeepSeek": wide(
        '<|tool▁calls▁begin|><|tool▁call▁begin|>function<|tool▁sep|>read\n```json\n{"filePath": "a.py"}\n```'
        "<|tool▁call▁end|><|tool▁calls▁end|>"
    ),
    "DeepSeek 3.1": wide(
        '<|tool▁calls▁begin|><|tool▁call▁begin|>read<|tool▁sep|>{"filePath": "a.py"}<|tool▁call▁end|>'
    ),
    "DeepSeek 3.2": wide(
        '<|DSML|function_calls>\n<|DSML|invoke name="read">\n<|DSML|parameter name="filePath" string="true">'
        "a.py</|DSML|parameter>\n</|DSML|invoke>\n</|DSML|function_calls>"
    ),
    "GLM": "<tool_call>read\n<arg_key>filePath</arg_key>\n<arg_value>a.py</arg_value>\n</tool_call>",
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>"
    '{"filePath": "a.py"}<|tool_call_end|><|tool_calls_section_end|>',
    "gpt-oss": '<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"filePath": "a.py"}<|call|>',
    "fenced": f"```json\n{JSON}\n```",
    "fenced, as services write it": '```json\n{"type": "function", "function": {"name": "read", "arguments": '
    '"{\\"filePath\\": \\"a.py\\"}"}}\n```',
    "Gemma": '```tool_code\nread(filePath="a.py")\n```',
    "Gemma, printed": '```tool_code\nprint(default_api.read(filePath="a.py"))\n```',
    "Python's form, as the signature of a tool": "read(filePath='a.py')",
    "Llama 4": '[read(filePath="a.py")]',
    "ReAct": 'Action: read\nAction Input: {"filePath": "a.py"}',
    "ReAct, with a result made up": 'Action: read\nAction Input: {"filePath": "a.py"}\nObservation: x = 1\ny = 2',
    "ReAct as JSON": '```json\n{"action": "read", "action_input": {"filePath": "a.py"}}\n```',
    "Cline": "<read>\n<filePath>a.py</filePath>\n</read>",
    "Qwen, with a result made up": f"<tool_call>\n{JSON}\n</tool_call>\n<tool_response>\nx = 1\n</tool_response>",
    "a trailing comma": '<tool_call>\n{"name": "read", "arguments": {"filePath": "a.py",}}\n</tool_call>',
    "Python's quotes": "<tool_call>\n{'name': 'read', 'arguments': {'filePath': 'a.py'}}\n</tool_call>",
    "another name of the tool": JSON.replace('"read"', '"read_file"').join(
        ("<tool_call>", "</tool_call>")
    ),
    "invoke": '<function_calls>\n<invoke name="read">\n<parameter name="filePath">a.py</parameter>\n'
    "</invoke>\n</function_calls>",
}


@pytest.mark.parametrize(
    "before", ["", "I look at the file first.\n\n"], ids=["alone", "after a sentence"]
)
@pytest.mark.parametrize("form", FORMS)
def test_a_call_is_found_in_each_familys_form(form: str, before: str) -> None:
    ((name, arguments),), rest = find_text_calls(f"{before}{FORMS[form]}\n", TOOLS)
    assert (name, msgspec.json.decode(arguments)) in (("read", READ), ("read_file", READ))
    assert rest == before.strip()


@pytest.mark.parametrize(
    "text",
    [
        "I changed `compute(x)` so that it calls `read(filePath='a.py')`.",
        "Call it like this:\n```python\nread('a.py')\n```",
        "```python\nx = read(filePath='a.py')\nprint(x)\n```",
        "It now uses read(a)",
        "```python\nopen(file='a.py')\n```",
        "Action: read the file\nThen stop.",
        "<p>\n<b>bold</b>\n</p>",
    ],
)
def test_code_in_an_answer_is_no_call(text: str) -> None:
    assert find_text_calls(text, TOOLS) == ([], text)


def test_several_calls_are_found_in_order() -> None:
    other = JSON.replace("a.py", "b.py")
    loose = "".join(f"<tool_call>{each[:-1]}, }}</tool_call>\n" for each in (JSON, other))
    for text in (
        f"<tool_call>{JSON}</tool_call>\n<tool_call>{other}</tool_call>",
        f"[TOOL_CALLS][{JSON}, {other}]",
        loose,
    ):
        calls, rest = find_text_calls(text, TOOLS)
        assert [msgspec.json.decode(arguments)["filePath"] for _, arguments in calls] == [
            "a.py",
            "b.py",
        ]
        assert rest == ""


@pytest.mark.parametrize(
    "text",
    [
        "Done. All tests pass.",
        f"A call looks like this:\n```json\n{JSON}\n```\nThe server then answers.",
        JSON.replace("read", "delete_all"),
        '```json\n{"name": "read", "version": "1.0", "arguments": {}}\n```',
        '{"name": "read"}',
        "```python\nread('a.py')\n```",
        "<tool_call>\n{broken",
        '[{"name": "read", "arguments": {}}, 3]',
        "<tool_call>{'name': 'read', 'arguments': {'filePath': ...}}</tool_call>",
        "<function=read>{'filePath': 1j}</function>",
        '<tool_call>{"name": "read", "arguments": {"filePath": "\\ud83d"}}</tool_call>',
        "<" * 50_000,
        "[" * 50_000,
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert find_text_calls(text, TOOLS) == ([], text)
