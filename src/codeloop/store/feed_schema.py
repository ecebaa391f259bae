"""The tables whose rows are their own events: each says when it was made and last changed.

Numbers count the changes of a database, over all processes. `number`: that of the change that made
a row; `changed`: that of its last change since; NULL: there was none. So a state is stored once,
and a follower reads the rows that are newer than what it has seen. Of the changes between those
two, `passed` keeps the number and the row's.
"""

_MESSAGES = """
    ALTER TABLE message RENAME TO old_message;
    DROP INDEX message_session;
    CREATE TABLE message (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL, created INTEGER NOT NULL,
        changed INTEGER, data BLOB NOT NULL);
    CREATE INDEX message_session ON message (session_id, created);
    CREATE INDEX message_changed ON message (changed) WHERE changed IS NOT NULL;
    INSERT INTO message (id, session_id, created, data)
        SELECT id, session_id, created, data FROM old_message ORDER BY created, id;
    DROP TABLE old_message;
    """
# `time`: of the last change, in ms. No two rows have one number, whatever their table.
_PARTS = """
    ALTER TABLE part RENAME TO old_part;
    DROP INDEX part_message;
    DROP INDEX part_session;
    CREATE TABLE part (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL, message INTEGER NOT NULL, changed INTEGER,
        time INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (message, id));
    CREATE INDEX part_changed ON part (changed) WHERE changed IS NOT NULL;
    INSERT INTO part (number, id, message, time, data)
        SELECT (SELECT count(*) FROM message) + row_number() OVER (ORDER BY message.number, old_part.id),
            old_part.id, message.number, message.created, old_part.data
        FROM old_part JOIN message ON message.id = old_part.message_id;
    DROP TABLE old_part;
    DROP INDEX decision_session;
    """
_SESSIONS = """
    ALTER TABLE session RENAME TO old_session;
    DROP INDEX session_updated;
    DROP INDEX session_parent;
    CREATE TABLE session (
        id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT NOT NULL, title TEXT NOT NULL,
        updated INTEGER NOT NULL, data BLOB NOT NULL, number INTEGER NOT NULL, changed INTEGER) WITHOUT ROWID;
    CREATE INDEX session_updated ON session (updated);
    CREATE INDEX session_parent ON session (parent_id);
    CREATE INDEX session_number ON session (number);
    CREATE INDEX session_changed ON session (changed) WHERE changed IS NOT NULL;
    INSERT INTO session (id, parent_id, directory, title, updated, data, number)
        SELECT id, parent_id, directory, title, updated, data,
            (SELECT count(*) FROM message) + (SELECT count(*) FROM part) + row_number() OVER (ORDER BY updated, id)
        FROM old_session;
    DROP TABLE old_session;
    """
# `last`: the last number. `pruned`: who has seen no more than the changes up to this one
# may have missed some that are no longer kept. `json`: a codeloop of an earlier version that still
# runs writes an event, with `data`, in each transaction: so the whole of it fails.
_OUTBOX = """
    CREATE TABLE outbox (last INTEGER NOT NULL, pruned INTEGER NOT NULL);
    INSERT INTO outbox SELECT last, last FROM (SELECT max(
        coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0), (SELECT count(*) FROM session)
            + (SELECT count(*) FROM message) + (SELECT count(*) FROM part)) AS last);
    DROP TABLE event;
    CREATE TABLE event (seq INTEGER PRIMARY KEY, session_id TEXT, json BLOB NOT NULL);
    CREATE TABLE passed (number INTEGER PRIMARY KEY, owner INTEGER NOT NULL);
    CREATE TRIGGER session_changes AFTER UPDATE OF changed ON session WHEN old.changed IS NOT NULL
        BEGIN INSERT INTO passed (number, owner) VALUES (old.changed, old.number); END;
    CREATE TRIGGER message_changes AFTER UPDATE OF changed ON message WHEN old.changed IS NOT NULL
        BEGIN INSERT INTO passed (number, owner) VALUES (old.changed, old.number); END;
    CREATE TRIGGER part_changes AFTER UPDATE OF changed ON part WHEN old.changed IS NOT NULL
        BEGIN INSERT INTO passed (number, owner) VALUES (old.changed, old.number); END;
    PRAGMA user_version = 5;
    """
FEED_MIGRATION = f"{_MESSAGES}{_PARTS}{_SESSIONS}{_OUTBOX}"
"""The script that makes them of the tables of version 4. Rows keep their plain JSON
until they change.
"""
MESSAGE_VIEW = "CREATE TEMP VIEW message AS SELECT id AS number, * FROM main.message"
PART_VIEW = "CREATE TEMP VIEW part AS SELECT message_id AS message, * FROM main.part"
"""Show a database of an earlier version, which is only read, with the columns of this one."""
