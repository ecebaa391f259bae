"""Measures the adapter of each protocol: its import, reading deltas,
and a whole process that asks for an answer.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

from bench.bench_run import BenchRun
from bench.process_runner import Command, MeasurementFailed
from bench.protocols.dialects import DIALECTS
from bench.scenario_server import Scenario, ScenarioServer
from bench.subjects import Installation
from codeloop.model.protocols.anthropic.adapter import AnthropicReader
from codeloop.model.protocols.bedrock.adapter import BedrockReader, EventStreamParser
from codeloop.model.protocols.chat_completions.adapter import ChatCompletionsReader
from codeloop.model.protocols.google.adapter import GoogleReader
from codeloop.model.protocols.google_interactions.adapter import InteractionReader
from codeloop.model.protocols.responses.adapter import ResponsesReader
from codeloop.model.providers import ADAPTERS
from codeloop.model.wire.response_reader import ResponseReader
from codeloop.net.sse import SseParser
from codeloop.schema.wire import JSON
from tests.support.adapter_rows import ADAPTER_ROWS
from tests.support.answers import Answer

DELTA_COUNT = 20_000
# More than any event of this bench has: the limit is not what is measured.
MAX_EVENT_BYTES = 1 << 24
READERS: dict[str, type[ResponseReader]] = {
    "chat": ChatCompletionsReader,
    "responses": ResponsesReader,
    "anthropic": AnthropicReader,
    "google": GoogleReader,
    "interactions": InteractionReader,
    "bedrock": BedrockReader,
}
"""By names of rows in `tests.support.adapter_rows`, one for each protocol."""
IMPORT_PROGRAM = """
import json, os, sys, time
import codeloop.model.wire.http_model, codeloop.net.client
from codeloop.kit.lazy import load_object
# Not the peak: that includes the memory of the process that starts this one.
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
memory, start = resident(), time.process_time()
load_object(sys.argv[1])
print(json.dumps([time.process_time() - start, resident() - memory]))
"""


def measure_adapters(bench: BenchRun) -> None:
    """Measure the import of each adapter and its reading of deltas."""
    for name in READERS:
        # Seconds of all deltas, as milliseconds of a thousand.
        bench.put_own(
            f"adapter-{name}",
            min(_time_deltas(name) for _ in range(bench.rounds)) / DELTA_COUNT * 1e6,
        )
        imports = [_measure_import(name) for _ in range(bench.rounds)]
        bench.put_own(f"adapter-{name}-import", min(each for each, _ in imports) * 1e3)
        bench.put_own(f"adapter-{name}-memory", min(size for _, size in imports) / 2**20)


def measure_adapter_answers(bench: BenchRun) -> None:
    """Measure whole processes that ask for one answer, by each protocol in turn,
    against chat completions.
    """
    with ScenarioServer(Scenario("answer")) as server:
        medians = bench.measure_medians(
            {name: _make_command(bench.codeloop, name, server.url) for name in READERS}
        )
    for name in READERS:
        if name != "chat":
            bench.put_own(f"adapter-{name}-answer", medians[name].cpu / medians["chat"].cpu)


def _make_command(installation: Installation, name: str, url: str) -> Command:
    """Return the command that asks for one answer by the protocol of a row."""
    row = ADAPTER_ROWS[name]
    options = {
        "baseURL": url.removesuffix("/v1") + row.base,
        "apiKey": "bench",
        "protocol": row.protocol,
    }
    provider: JSON = {"npm": row.info.npm, "options": options, "models": {"m": {}}}
    command = installation.fill(installation.subject.argv)
    config = {
        "CODELOOP_CONFIG_CONTENT": json.dumps({"provider": {"bench": provider}, "model": "bench/m"})
    }
    return replace(command, environ={**command.environ, **config})


def _time_deltas(name: str) -> float:
    """Return the CPU of reading an answer's events one by one, as they come from the network,
    seconds.
    """
    protocol = ADAPTER_ROWS[name].protocol
    events = list(
        DIALECTS[protocol].stream_events(Answer(text="word " * DELTA_COUNT, deltas=0), "m")
    )
    reader: ResponseReader = READERS[name]()
    parser = EventStreamParser(MAX_EVENT_BYTES) if name == "bedrock" else SseParser(MAX_EVENT_BYTES)
    start = time.process_time()
    for event in events:
        reader.feed(parser.feed(event))
    return time.process_time() - start


def _measure_import(name: str) -> tuple[float, float]:
    """Return CPU (seconds) and memory (bytes) of an adapter's import in a process of its own."""
    command = [sys.executable, "-c", IMPORT_PROGRAM, ADAPTERS[ADAPTER_ROWS[name].protocol]]
    done = subprocess.run(
        command, capture_output=True, text=True, env=dict(os.environ), check=False
    )
    if done.returncode:
        raise MeasurementFailed(f"the adapter of {name} can't be imported: {done.stderr[-300:]}")
    seconds, size = json.loads(done.stdout)
    return seconds, size
