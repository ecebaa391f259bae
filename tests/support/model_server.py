"""A model server on a local socket that speaks the protocols of `bench/protocols/dialects.py`.

The bench runs it as a process (`python -m tests.support.model_server --script FILE`), the tests run
it in their own process. It needs only the standard library. Its answers, and its failures, come
from a script; like the services, it refuses histories that are not valid.
"""

import argparse
import asyncio
import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from bench.protocols.dialects import DIALECTS, Dialect, find_dialect, make_server_error
from bench.protocols.encoding import make_model_list
from tests.support.answers import Answer, AnswerScript, read_script
from tests.support.http_connection import (
    ClientConnection,
    ReceivedRequest,
    encode_chunk,
    encode_head,
)

MAX_RENDERED_ANSWERS = 256
"""Rendered answers that are kept in memory."""
STREAM_HEADERS = {"transfer-encoding": "chunked"}
STEP_PATTERN = re.compile(rb'"role":\s*"(?:assistant|model)"|"type":\s*"function_call"')
KEY_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")
RENDERED_PROTOCOLS = ("openai-chat", "anthropic-messages")
"""Protocols for which a process renders its answers before the first request."""
AnswerChooser = Callable[[ReceivedRequest], Answer]


@dataclass(slots=True)
class ModelServer:
    """Serves within `async with ModelServer([Answer(text="hi")]) as server`, at `server.url`.

    `answers`: one for each request, the last one for all further requests; or a function of the
    request. `key`: a request without it is refused. `validate`: histories are checked as services
    check them. `record`: requests are kept in `requests`.
    """

    answers: Sequence[Answer] | AnswerChooser
    key: str = ""
    validate: bool = True
    record: bool = True
    port: int = 0
    models: tuple[str, ...] = ("bench",)
    requests: list[ReceivedRequest] = field(default_factory=list[ReceivedRequest])
    aborted: int = 0
    """How many connections the client closed in the middle of an answer."""
    connections: int = 0
    _served: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _rendered: dict[tuple[int, str], tuple[Answer, bytes]] = field(
        default_factory=dict[tuple[int, str], tuple[Answer, bytes]]
    )

    @property
    def url(self) -> str:
        """The base URL, for a provider's `baseURL`."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        """Listen on the loopback address."""
        self._server = await asyncio.start_server(
            self._serve_connection, "127.0.0.1", self.port, limit=1 << 20
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening and drop the open connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def serve_forever(self) -> None:
        """Serve until the task is cancelled."""
        if self._server is not None:
            await self._server.serve_forever()

    async def _serve_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self.connections += 1
        try:
            client = ClientConnection(reader, writer)
            while (received := await client.request()) is not None:
                if self.record:
                    self.requests.append(received)
                if not await self._answer(received, client):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.aborted += 1
        except asyncio.CancelledError:
            pass
        finally:
            writer.transport.abort()

    async def _answer(self, received: ReceivedRequest, client: ClientConnection) -> bool:
        """Answer one request; return False if the connection has to be closed."""
        path = received.path.partition("?")[0]
        dialect = find_dialect(path)
        if dialect is None and path != "/v1/models":
            return await client.send(
                404, make_server_error(path, "not_found_error", f"no such path: {path}")
            )
        given = next(
            (received.headers[name] for name in KEY_HEADERS if name in received.headers), ""
        )
        given = given or received.headers.get("authorization", "").removeprefix("Bearer ")
        if self.key and given != self.key:
            return await client.send(
                401, make_server_error(path, "authentication_error", f"invalid key: {given}")
            )
        if dialect is None:
            return await client.send(200, make_model_list(self.models))
        if (
            self.validate
            and (reason := dialect.check_request(received.path, received.body)) is not None
        ):
            return await client.send(400, make_server_error(path, "invalid_request_error", reason))
        return await self._play(self._choose(received), dialect, client)

    def _choose(self, received: ReceivedRequest) -> Answer:
        if callable(self.answers):
            return self.answers(received)
        answer = self.answers[min(self._served, len(self.answers) - 1)]
        self._served += 1
        return answer

    async def _play(self, answer: Answer, dialect: Dialect, client: ClientConnection) -> bool:
        """Send an answer, or fail as it says; return False if the connection has to be closed."""
        if answer.hang and not await client.wait(answer.hang):
            self.aborted += 1
            return False
        if (
            answer.until
            and answer.stall_after is None
            and not await client.wait_until(answer.until)
        ):
            self.aborted += 1
            return False
        if answer.status != 200:
            return await client.send(answer.status, answer.body.encode(), answer.headers)
        if not answer.stream:
            return await client.send(
                200, answer.body.encode() or dialect.make_response(answer, "bench"), answer.headers
            )
        client.write(
            encode_head(
                200, {"content-type": dialect.content_type, **STREAM_HEADERS, **answer.headers}
            )
        )
        if (
            answer.delay
            or answer.pieces
            or answer.cut_after is not None
            or answer.stall_after is not None
        ):
            return await self._drip(answer, client, dialect)
        client.write(self.render(answer, dialect))
        await client.drain()
        return True

    async def _drip(self, answer: Answer, client: ClientConnection, dialect: Dialect) -> bool:
        """Send an answer in pieces, up to the point where it stalls or is cut off."""
        events = list(dialect.stream_events(answer, "bench"))
        kept = min(
            len(events) if each is None else each for each in (answer.cut_after, answer.stall_after)
        )
        is_there = await self._send_events(answer, events[:kept], client)
        if is_there and answer.stall_after is not None and answer.until is not None:
            is_there = await client.wait_until(answer.until) and await self._send_events(
                answer, events[kept:], client
            )
            kept = len(events)
        if not is_there:
            self.aborted += 1
            return False
        if kept == len(events):
            client.write(b"0\r\n\r\n")
            await client.drain()
            return True
        if answer.stall_after is not None:
            await client.wait(3_600)
            self.aborted += 1
        else:
            await client.hang_up()
        return False

    async def _send_events(
        self, answer: Answer, events: Sequence[bytes], client: ClientConnection
    ) -> bool:
        """Send events with the pauses of an answer; return False when the client is gone."""
        pieces = events
        if answer.pieces:
            joined = b"".join(events)
            pieces = [
                joined[at : at + answer.pieces] for at in range(0, len(joined), answer.pieces)
            ]
        due = asyncio.get_running_loop().time()
        for piece in pieces:
            # A fixed schedule, so that waking late does not make the whole answer slower.
            due += answer.delay
            if answer.delay and not await client.wait(
                max(due - asyncio.get_running_loop().time(), 0.0)
            ):
                return False
            client.write(encode_chunk(piece))
            await client.drain()
        return True

    def render(self, answer: Answer, dialect: Dialect) -> bytes:
        """Return the chunks of an answer, one for each event;
        they are made once for each answer and protocol.
        """
        key = (id(answer), dialect.suffix)
        known = self._rendered.get(key)
        if known is not None and known[0] is answer:
            return known[1]
        events = dialect.stream_events(answer, "bench")
        chunks = b"".join(map(encode_chunk, events)) + b"0\r\n\r\n"
        if len(self._rendered) >= MAX_RENDERED_ANSWERS:
            self._rendered.clear()
        self._rendered[key] = (answer, chunks)
        return chunks


def choose_by_step(script: AnswerScript) -> AnswerChooser:
    """Return a function that chooses by the number of answers in the history,
    so that sessions can run concurrently.
    """

    def choose(received: ReceivedRequest) -> Answer:
        if b'"tools"' not in received.body:
            return script.without_tools
        return script.answers[
            min(len(STEP_PATTERN.findall(received.body)), len(script.answers) - 1)
        ]

    return choose


async def serve_answers(server: ModelServer, ready: Sequence[Answer] = ()) -> None:
    """Render the answers `ready`, print the base URL, and serve until the process is stopped."""
    async with server:
        for answer in ready:
            for name in RENDERED_PROTOCOLS:
                server.render(answer, DIALECTS[name])
        print(server.url, flush=True)
        await server.serve_forever()


def run_model_server(server: ModelServer, ready: Sequence[Answer] = ()) -> None:
    """Run `serve` until Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve_answers(server, ready))


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.model_server", description=__doc__
    )
    parser.add_argument(
        "--script", type=Path, required=True, help="a JSON file: answers, without_tools"
    )
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--key", default="", help="requests without this key are refused")
    parser.add_argument(
        "--validate", action="store_true", help="refuse histories that the real services refuse"
    )
    arguments = parser.parse_args()
    script = read_script(arguments.script)
    server = ModelServer(
        choose_by_step(script),
        key=arguments.key,
        validate=arguments.validate,
        record=False,
        port=arguments.port,
    )
    run_model_server(server, (*script.answers, script.without_tools))


if __name__ == "__main__":
    main()
