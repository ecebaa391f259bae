"""What each protocol's adapter costs: a whole answer, reading its deltas, its import over what all of them share."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

from bench.dialects import DIALECTS
from bench.figures import Bench
from bench.measure import Command, Failed
from bench.server import Scenario, Server
from bench.subject import Place
from codeloop.model.protocols.anthropic.response import AnthropicReader
from codeloop.model.protocols.bedrock.event_stream import EventStreamParser
from codeloop.model.protocols.bedrock.response import BedrockReader
from codeloop.model.protocols.chat_completions.response import ChatCompletionsReader
from codeloop.model.protocols.google.response import GoogleReader
from codeloop.model.protocols.google_interactions.response import InteractionReader
from codeloop.model.protocols.responses.response import ResponsesReader
from codeloop.model.providers import ADAPTERS
from codeloop.model.wire.response import ResponseReader
from codeloop.net.sse import SseParser
from codeloop.schema.wire import JSON
from tests.support.answers import Answer
from tests.support.rows import ROWS

DELTAS = 20_000
LONGEST = 1 << 24
"""Bytes of an event."""
READERS: dict[str, type[ResponseReader]] = {
    "chat": ChatCompletionsReader,
    "responses": ResponsesReader,
    "anthropic": AnthropicReader,
    "google": GoogleReader,
    "interactions": InteractionReader,
    "bedrock": BedrockReader,
}
"""By rows of `tests.support.rows`, one a protocol."""
IMPORT = """
import json, os, sys, time
import codeloop.model.wire.http_model, codeloop.net.client
from codeloop.kit.lazy import load_object
def resident():  # not its peak, which a process has from the one that started it
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
memory, start = resident(), time.process_time()
load_object(sys.argv[1])
print(json.dumps([time.process_time() - start, resident() - memory]))
"""


def adapters(bench: Bench) -> None:
    """Measure all of them; they are ours alone, so only the first place has figures."""
    place = bench.places[0]
    for name in READERS:
        bench.put(place, f"adapter-{name}", min(_read_deltas(name) for _ in range(bench.rounds)) / DELTAS * 1e6)
        imports = [_import_adapter(name) for _ in range(bench.rounds)]
        bench.put(place, f"adapter-{name}-import", min(each for each, _ in imports) * 1e3)
        bench.put(place, f"adapter-{name}-memory", min(size for _, size in imports) / 2**20)


def answers(bench: Bench) -> None:
    """Measure whole processes that ask for one answer, a process a protocol in turn, against chat completions."""
    place = bench.places[0]
    with Server(Scenario("answer")) as server:
        found = bench.medians({name: _ask_by(place, name, server.url) for name in READERS})
    for name in READERS:
        if name != "chat":
            bench.put(place, f"adapter-{name}-answer", found[name].cpu / found["chat"].cpu)


def _ask_by(place: Place, name: str, url: str) -> Command:
    """Return the command that asks for one answer by a protocol."""
    row = ROWS[name]
    options = {"baseURL": url.removesuffix("/v1") + row.base, "apiKey": "bench", "protocol": row.protocol}
    provider: JSON = {"npm": row.info.npm, "options": options, "models": {"m": {}}}
    command = place.fill(place.subject.argv)
    own = {"CODELOOP_CONFIG_CONTENT": json.dumps({"provider": {"bench": provider}, "model": "bench/m"})}
    return replace(command, environ={**command.environ, **own})


def _read_deltas(name: str) -> float:
    """Return the CPU seconds of reading an answer's events one by one, as they come from the network."""
    protocol = ROWS[name].protocol
    events = list(DIALECTS[protocol].events(Answer(text="word " * DELTAS, deltas=0), "m"))
    reader: ResponseReader = READERS[name]()
    framing = EventStreamParser(LONGEST) if name == "bedrock" else SseParser(LONGEST)
    start = time.process_time()
    for event in events:
        reader.feed(framing.feed(event))
    return time.process_time() - start


def _import_adapter(name: str) -> tuple[float, float]:
    """Return CPU seconds and bytes of an adapter's import in a process of its own."""
    command = [sys.executable, "-c", IMPORT, ADAPTERS[ROWS[name].protocol]]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    if done.returncode:
        raise Failed(f"the adapter of {name} can't be imported: {done.stderr[-300:]}")
    seconds, size = json.loads(done.stdout)
    return seconds, size
