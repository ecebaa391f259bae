"""A day's work by PyPI's `opencode-python-sdk`, which validates each answer and event.

python day.py URL PASSWORD DIRECTORY. The model runs `echo hi`, asks a question, then says "Done.".
"""

import sys
import threading
import time

from opencode import NotFoundError, Opencode

url, password, directory = sys.argv[1:4]
client = Opencode(url, password=password, directory=directory)
types: list[str] = []


def follow() -> None:
    """Note the types of all events."""
    with Opencode(url, password=password).event.subscribe() as stream:
        for event in stream:
            assert "Unknown" not in type(event).__name__, event
            types.append(event.type)


def wait_for(kind: str) -> None:
    """Wait until an event was told."""
    end = time.monotonic() + 60
    while kind not in types:
        assert time.monotonic() < end, (kind, types)
        time.sleep(0.02)


threading.Thread(target=follow, daemon=True).start()
wait_for("server.connected")
assert client.server.info().pid
assert [agent.id for agent in client.agent.list().data]
for listing in (client.model, client.provider, client.command, client.skill, client.mcp):
    assert listing.list().data is not None
assert client.location.get().directory == directory
session = client.session.create(title="A day")
sent = client.session.prompt(session.id, text="go")
wait_for("permission.asked")
for request in client.permission.list(session.id):
    client.permission.reply(session.id, request.id, decision="once")
wait_for("form.created")
for form in client.session.form.list(session.id):
    client.session.form.reply(session.id, form.id, answer={form.fields[0].key: "A"})
client.session.wait(session.id)
wait_for("session.execution.succeeded")
messages = list(client.message.list(session.id))
assert {message.type for message in messages} == {"user", "assistant"}, messages
assert client.session.message.get(session.id, sent.id).text == "go"
fork = client.session.fork(session.id, before=sent.id)
assert fork.fork is None or fork.fork.session_id == session.id
client.session.revert.stage(session.id, message_id=sent.id)
client.session.revert.clear(session.id)
client.session.prompt(session.id, text="DO:sleep")
client.session.interrupt(session.id)
client.session.update(session.id, title="Done")
assert client.session.get(session.id).title == "Done"
exported = client.session.export(session.id)
assert len(exported.messages) >= 4
client.session.remove(fork.id)
wait_for("session.deleted")
missing = ""
try:
    client.session.get(fork.id)
except NotFoundError as error:
    missing = str(error.body)
assert missing, "a session that was removed is still there"
print("the day is over", sorted(set(types)))
