"""Asks a server once by a service's own library: `python clients.py NAME URL`.
Prints what it read as JSON.
"""

import json
import sys
from importlib import import_module
from typing import Any

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
Found = dict[str, Any]


def chat(url: str) -> Found:
    """Ask by chat completions."""
    openai: Any = import_module("openai")

    function = {"name": "read", "description": "Read.", "parameters": SCHEMA}
    client: Any = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    usage: Any = None
    text, calls = "", dict[int, list[str]]()
    for chunk in client.chat.completions.create(
        model="m",
        stream=True,
        stream_options={"include_usage": True},
        messages=[{"role": "user", "content": "go"}],
        tools=[{"type": "function", "function": function}],
    ):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                held = calls.setdefault(call.index, ["", "", ""])
                more = (call.id, call.function.name, call.function.arguments)
                calls[call.index] = [old + (new or "") for old, new in zip(held, more, strict=True)]
    return {
        "text": text,
        "calls": list(calls.values()),
        "input": usage.prompt_tokens,
        "output": usage.completion_tokens,
    }


def responses(url: str) -> Found:
    """Ask by Responses."""
    openai: Any = import_module("openai")

    client: Any = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    tool = {
        "type": "function",
        "name": "read",
        "description": "Read.",
        "parameters": SCHEMA,
        "strict": False,
    }
    with client.responses.stream(
        model="m", input=[{"role": "user", "content": "go"}], tools=[tool], store=False
    ) as stream:
        found = stream.get_final_response()
    calls = [
        [each.call_id, each.name, each.arguments]
        for each in found.output
        if each.type == "function_call"
    ]
    counts = {"input": found.usage.input_tokens, "output": found.usage.output_tokens}
    return {"text": found.output_text, "calls": calls, **counts}


def anthropic(url: str) -> Found:
    """Ask by messages."""
    anthropic: Any = import_module("anthropic")

    client: Any = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
    tool = {"name": "read", "description": "Read.", "input_schema": SCHEMA}
    given = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "go"}],
        "tools": [tool],
    }
    with client.messages.stream(**given) as stream:
        found = stream.get_final_message()
    text = "".join(block.text for block in found.content if block.type == "text")
    calls = [
        [block.id, block.name, block.input] for block in found.content if block.type == "tool_use"
    ]
    return {
        "text": text,
        "calls": calls,
        "input": found.usage.input_tokens,
        "output": found.usage.output_tokens,
    }


def google(url: str) -> Found:
    """Ask by generateContent."""
    genai: Any = import_module("google.genai")

    client: Any = genai.Client(api_key="k", http_options={"base_url": url})
    declaration = {
        "name": "read",
        "description": "Read.",
        "parameters": {**SCHEMA, "type": "OBJECT"},
    }
    config = {"tools": [{"function_declarations": [declaration]}]}
    usage: Any = None
    calls: list[list[Any]] = []
    text = ""
    for chunk in client.models.generate_content_stream(
        model="gemini-3.5-flash", contents="go", config=config
    ):
        usage = chunk.usage_metadata or usage
        for part in (
            chunk.candidates[0].content.parts or []
            if chunk.candidates and chunk.candidates[0].content
            else []
        ):
            text += part.text or ""
            calls += (
                [[part.function_call.id, part.function_call.name, part.function_call.args]]
                if part.function_call
                else []
            )
    return {
        "text": text,
        "calls": calls,
        "input": usage.prompt_token_count,
        "output": usage.candidates_token_count,
    }


def interactions(url: str) -> Found:
    """Ask by the Interactions API."""
    genai: Any = import_module("google.genai")

    client: Any = genai.Client(api_key="k", http_options={"base_url": url, "api_version": "v1beta"})
    tool = {"type": "function", "name": "read", "description": "Read.", "parameters": SCHEMA}
    usage: Any = None
    text = ""
    calls: dict[int, list[str]] = {}
    asked = [{"type": "user_input", "content": [{"type": "text", "text": "go"}]}]
    for event in client.interactions.create(
        model="gemini-9-pro", input=asked, tools=[tool], stream=True, store=False
    ):
        match event.event_type:
            case "step.start" if event.step.type == "function_call":
                calls[event.index] = [event.step.id, event.step.name, ""]
            case "step.delta" if event.delta.type == "text":
                text += event.delta.text
            case "step.delta" if event.delta.type == "arguments_delta":
                calls[event.index][2] += event.delta.arguments
            case "interaction.completed":
                usage = event.interaction.usage
            case _:
                continue
    counts = {"input": usage.total_input_tokens, "output": usage.total_output_tokens}
    return {"text": text, "calls": list(calls.values()), **counts}


def bedrock(url: str) -> Found:
    """Ask by Converse."""
    boto3: Any = import_module("boto3")

    keys = {"aws_access_key_id": "AKIA", "aws_secret_access_key": "s", "region_name": "us-east-1"}
    client: Any = boto3.client("bedrock-runtime", endpoint_url=url, **keys)
    tools = {
        "tools": [
            {"toolSpec": {"name": "read", "description": "Read.", "inputSchema": {"json": SCHEMA}}}
        ]
    }
    answer = client.converse_stream(
        modelId="us.anthropic.claude-sonnet-4-5-v1:0",
        messages=[{"role": "user", "content": [{"text": "go"}]}],
        toolConfig=tools,
    )
    usage: Found = {}
    text, calls = "", dict[int, list[str]]()
    for event in answer["stream"]:
        match event:
            case {"contentBlockStart": {"contentBlockIndex": at, "start": {"toolUse": use}}}:
                calls[at] = [use["toolUseId"], use["name"], ""]
            case {"contentBlockDelta": {"delta": {"text": more}}}:
                text += more
            case {"contentBlockDelta": {"contentBlockIndex": at, "delta": {"toolUse": use}}}:
                calls[at][2] += use["input"]
            case {"metadata": {"usage": counts}}:
                usage = counts
            case _:
                continue
    return {
        "text": text,
        "calls": list(calls.values()),
        "input": usage["inputTokens"],
        "output": usage["outputTokens"],
    }


CLIENTS = {
    "chat": chat,
    "responses": responses,
    "anthropic": anthropic,
    "google": google,
    "interactions": interactions,
    "bedrock": bedrock,
}
found = CLIENTS[sys.argv[1]](sys.argv[2])
found["calls"] = [
    [*head, each if isinstance(each, dict) else json.loads(each)] for *head, each in found["calls"]
]
json.dump(found, sys.stdout)
