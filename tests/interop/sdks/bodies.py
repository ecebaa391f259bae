"""Sends one conversation by a service's own library: `python bodies.py NAME URL`.
The server keeps what comes.
"""

import sys
from importlib import import_module
from typing import Any

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
SYSTEM, ASKED, SAID, RESULT, THEN = "Be brief.", "Look", "I read.", "größe 漢字", "Go on"
ARGUMENTS = {"path": "a"}


def chat(url: str) -> None:
    """Send it by chat completions."""
    function = {"name": "read", "description": "Read.", "parameters": SCHEMA}
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "read", "arguments": '{"path":"a"}'},
    }
    client: Any = import_module("openai").OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    list(
        client.chat.completions.create(
            model="m1",
            max_tokens=500,
            stream=True,
            stream_options={"include_usage": True},
            messages=[
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": ASKED},
                {"role": "assistant", "content": SAID, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": RESULT},
                {"role": "user", "content": THEN},
            ],
            tools=[{"type": "function", "function": function}],
        )
    )


def responses(url: str) -> None:
    """Send it by Responses."""
    client: Any = import_module("openai").OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    tool = {
        "type": "function",
        "name": "read",
        "description": "Read.",
        "parameters": SCHEMA,
        "strict": False,
    }
    said = {"type": "output_text", "text": SAID}
    list(
        client.responses.create(
            model="gpt-5.4",
            stream=True,
            store=False,
            include=["reasoning.encrypted_content"],
            reasoning={"summary": "auto"},
            max_output_tokens=500,
            input=[
                {"role": "developer", "content": SYSTEM},
                {"role": "user", "content": [{"type": "input_text", "text": ASKED}]},
                {"type": "message", "role": "assistant", "content": [said]},
                {
                    "type": "function_call",
                    "call_id": "c1",
                    "name": "read",
                    "arguments": '{"path":"a"}',
                },
                {"type": "function_call_output", "call_id": "c1", "output": RESULT},
                {"role": "user", "content": [{"type": "input_text", "text": THEN}]},
            ],
            tools=[tool],
        )
    )


def anthropic(url: str) -> None:
    """Send it by messages."""
    client: Any = import_module("anthropic").Anthropic(base_url=url, api_key="k", max_retries=0)
    mark = {"cache_control": {"type": "ephemeral"}}
    call = {"type": "tool_use", "id": "c1", "name": "read", "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": RESULT}
    given: Any = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 500,
        "system": [{"type": "text", "text": SYSTEM, **mark}],
        "tools": [{"name": "read", "description": "Read.", "input_schema": SCHEMA, **mark}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": ASKED}]},
            {"role": "assistant", "content": [{"type": "text", "text": SAID}, {**call, **mark}]},
            {"role": "user", "content": [result, {"type": "text", "text": THEN, **mark}]},
        ],
    }
    with client.messages.stream(**given) as stream:
        stream.get_final_message()


def google(url: str) -> None:
    """Send it by generateContent."""
    client: Any = import_module("google.genai").Client(
        api_key="k", http_options={"base_url": url, "api_version": "v1beta"}
    )
    declaration = {"name": "read", "description": "Read.", "parameters": SCHEMA}
    response = {"id": "c1", "name": "read", "response": {"output": RESULT}}
    stream = client.models.generate_content_stream(
        model="gemini-3.5-flash",
        contents=[
            {"role": "user", "parts": [{"text": ASKED}]},
            {
                "role": "model",
                "parts": [
                    {"text": SAID},
                    {"function_call": {"id": "c1", "name": "read", "args": ARGUMENTS}},
                ],
            },
            {"role": "user", "parts": [{"function_response": response}]},
            {"role": "user", "parts": [{"text": THEN}]},
        ],
        config={
            "system_instruction": SYSTEM,
            "max_output_tokens": 500,
            "thinking_config": {"include_thoughts": True},
            "tools": [{"function_declarations": [declaration]}],
        },
    )
    list(stream)


def interactions(url: str) -> None:
    """Send it by the Interactions API."""
    client: Any = import_module("google.genai").Client(
        api_key="k", http_options={"base_url": url, "api_version": "v1beta"}
    )
    stream = client.interactions.create(
        model="gemini-9-pro",
        stream=True,
        store=False,
        system_instruction=SYSTEM,
        generation_config={"max_output_tokens": 500, "thinking_summaries": "auto"},
        tools=[{"type": "function", "name": "read", "description": "Read.", "parameters": SCHEMA}],
        input=[
            {"type": "user_input", "content": [{"type": "text", "text": ASKED}]},
            {"type": "model_output", "content": [{"type": "text", "text": SAID}]},
            {"type": "function_call", "id": "c1", "name": "read", "arguments": ARGUMENTS},
            {"type": "function_result", "call_id": "c1", "name": "read", "result": RESULT},
            {"type": "user_input", "content": [{"type": "text", "text": THEN}]},
        ],
    )
    list(stream)


def bedrock(url: str) -> None:
    """Send it by Converse."""
    keys = {"aws_access_key_id": "AKIA", "aws_secret_access_key": "s", "region_name": "us-east-1"}
    client: Any = import_module("boto3").client("bedrock-runtime", endpoint_url=url, **keys)
    point = {"cachePoint": {"type": "default"}}
    tool = {"toolSpec": {"name": "read", "description": "Read.", "inputSchema": {"json": SCHEMA}}}
    use = {"toolUse": {"toolUseId": "c1", "name": "read", "input": ARGUMENTS}}
    result = {"toolResult": {"toolUseId": "c1", "content": [{"text": RESULT}]}}
    answer = client.converse_stream(
        modelId="us.anthropic.claude-sonnet-4-5-v1:0",
        system=[{"text": SYSTEM}, point],
        inferenceConfig={"maxTokens": 500},
        messages=[
            {"role": "user", "content": [{"text": ASKED}, point]},
            {"role": "assistant", "content": [{"text": SAID}, use]},
            {"role": "user", "content": [result, {"text": THEN}, point]},
        ],
        toolConfig={"tools": [tool, point]},
    )
    list(answer["stream"])


CLIENTS = {
    "chat": chat,
    "responses": responses,
    "anthropic": anthropic,
    "google": google,
    "interactions": interactions,
    "bedrock": bedrock,
}
CLIENTS[sys.argv[1]](sys.argv[2])
