"""Stand-ins for Ollama and LM Studio, with the requests that codeloop uses;
each refuses what the real one refuses.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.http_service import Reply, ServiceRequest

ANSWER = {
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "ready"}, "finish_reason": "stop"}
    ]
}


@dataclass
class OllamaServer:
    """Loads one model at a time, with a context of its `num_ctx`, by default 4,096 tokens.

    `models`: the `num_ctx` of each model, by name; None: it has none.
    `most`: the context that they were trained with.
    """

    models: dict[str, int | None] = field(default_factory=lambda: {"qwen3:8b": None})
    most: int = 40_960
    can_create: bool = True
    loaded: dict[str, int] = field(default_factory=dict[str, int])
    asked: list[str] = field(default_factory=list[str])
    """The models that answered, in order."""

    def answer(self, asked: ServiceRequest) -> Reply:
        """Answer one request."""
        body: dict[str, Any] = json.loads(asked.body) if asked.body else {}
        match asked.method, asked.path:
            case "GET", "/v1/models":
                return 200, {
                    "object": "list",
                    "data": [{"id": name, "object": "model"} for name in self.models],
                }
            case "GET", "/api/ps":
                rows = [
                    {"name": name, "model": name, "context_length": size}
                    for name, size in self.loaded.items()
                ]
                return 200, {"models": rows}
            case "POST", "/api/show" if body["model"] in self.models:
                return 200, {
                    "model_info": {"qwen3.context_length": self.most},
                    "capabilities": ["completion", "tools"],
                }
            case "POST", "/api/generate" if body["model"] in self.models:
                assert set(body) == {"model"}, body
                return 200, {
                    "model": body["model"],
                    "response": "",
                    "done": self._load(body["model"]),
                }
            case "POST", "/api/create" if self.can_create:
                assert set(body) == {"model", "from", "parameters", "stream"}, body
                assert set(body["parameters"]) == {"num_ctx"}, body
                if body["from"] not in self.models:
                    return 400, {"error": "pull model manifest: file does not exist"}
                self.models[body["model"]] = body["parameters"]["num_ctx"]
                return 200, {"status": "success"}
            case "POST", "/v1/chat/completions" if body["model"] in self.models:
                assert not {"options", "num_ctx"} & set(body), body
                self.asked.append(body["model"])
                self._load(body["model"])
                return 200, {**ANSWER, "model": body["model"]}
            case _:
                return 404, {"error": f"model '{body.get('model')}' not found"}

    def _load(self, name: str) -> bool:
        self.loaded = {name: min(self.models[name] or 4_096, self.most)}
        return True


@dataclass
class LmStudioServer:
    """Loads a model once more, as `key:2`, if an instance of it exists;
    `room`: the largest context that fits.
    """

    key: str = "qwen/qwen3-8b"
    most: int = 40_960
    room: int = 40_960
    instances: dict[str, int] = field(default_factory=lambda: {"qwen/qwen3-8b": 4_096})
    asked: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """The instances that answered, each with its context."""

    def answer(self, asked: ServiceRequest) -> Reply:
        """Answer one request."""
        body: dict[str, Any] = json.loads(asked.body) if asked.body else {}
        match asked.method, asked.path:
            case "GET", "/v1/models":
                return 200, {"data": [{"id": self.key}]}
            case "GET", path if path == f"/api/v0/models/{self.key}":
                loaded = (
                    {"loaded_context_length": self.instances[self.key]}
                    if self.key in self.instances
                    else {}
                )
                state = "loaded" if loaded else "not-loaded"
                return 200, {
                    "id": self.key,
                    "state": state,
                    "max_context_length": self.most,
                    **loaded,
                }
            case "GET", "/api/v1/models":
                held = [
                    {"id": name, "config": {"context_length": size}}
                    for name, size in self.instances.items()
                ]
                row = {
                    "type": "llm",
                    "key": self.key,
                    "loaded_instances": held,
                    "max_context_length": self.most,
                }
                return 200, {"models": [row]}
            case "POST", "/api/v1/models/unload":
                assert set(body) == {"instance_id"}, body
                del self.instances[body["instance_id"]]
                return 200, body
            case "POST", "/api/v1/models/load":
                return self._load(body)
            case "POST", "/v1/chat/completions" if body["model"] in self.instances:
                self.asked.append((body["model"], self.instances[body["model"]]))
                return 200, ANSWER
            case _:
                return 404, {
                    "error": {
                        "message": f"Unexpected endpoint or method. ({asked.method} {asked.path})"
                    }
                }

    def _load(self, body: dict[str, Any]) -> Reply:
        if unknown := set(body) - {
            "model",
            "context_length",
            "echo_load_config",
            "flash_attention",
        }:
            return 400, {
                "error": {
                    "type": "invalid_request",
                    "message": f"Unrecognized key(s): {sorted(unknown)}",
                }
            }
        if body["model"] != self.key or body["context_length"] > self.room:
            return 500, {
                "error": {"type": "model_load_failed", "message": "insufficient system resources"}
            }
        name = self.key if self.key not in self.instances else f"{self.key}:2"
        self.instances[name] = body["context_length"]
        config = (
            {"load_config": {"context_length": body["context_length"]}}
            if body.get("echo_load_config")
            else {}
        )
        return 200, {
            "type": "llm",
            "instance_id": name,
            "load_time_seconds": 1.0,
            "status": "loaded",
            **config,
        }
