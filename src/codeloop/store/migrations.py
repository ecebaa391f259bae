"""The tables of the database, as the scripts that make them from those of each earlier version.

In the newest one the rows of three tables are their own events: each says when it was made and
last changed.

Numbers count the changes of a database, over all processes. `number`: that of the change that made
a row; `changed`: that of its last change since; NULL: there was none. So a state is stored once,
and a follower reads the rows that are newer than what it has seen. Of the changes between those
two, `passed` keeps the number and the row's.
"""

FIRST_MIGRATIONS = (
    """
    CREATE TABLE session (
        id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT NOT NULL, title TEXT NOT NULL,
        updated INTEGER NOT NULL, data BLOB NOT NULL) WITHOUT ROWID;
    CREATE INDEX session_updated ON session (updated);
    CREATE INDEX session_parent ON session (parent_id);
    CREATE TABLE message (
        id TEXT PRIMARY KEY, session_id TEXT NOT NULL, created INTEGER NOT NULL, data BLOB NOT NULL) WITHOUT ROWID;
    CREATE INDEX message_session ON message (session_id, created, id);
    CREATE TABLE part (
        id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, data BLOB NOT NULL);
    CREATE INDEX part_message ON part (message_id, id);
    CREATE INDEX part_session ON part (session_id);
    CREATE TABLE todo (session_id TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE permission (
        id TEXT PRIMARY KEY, session_id TEXT NOT NULL, reply TEXT, data BLOB NOT NULL) WITHOUT ROWID;
    CREATE INDEX permission_session ON permission (session_id);
    CREATE TABLE question (
        id TEXT PRIMARY KEY, session_id TEXT NOT NULL, open INTEGER NOT NULL, data BLOB NOT NULL) WITHOUT ROWID;
    CREATE INDEX question_session ON question (session_id);
    CREATE TABLE lease (
        session_id TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL,
        until INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE event (seq INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, data BLOB NOT NULL);
    PRAGMA user_version = 1;
    """,
    """
    CREATE TABLE facts (session_id TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID;
    PRAGMA user_version = 2;
    """,
    """
    CREATE TABLE remembered (
        id TEXT PRIMARY KEY, session_id TEXT NOT NULL, directory TEXT NOT NULL, time INTEGER NOT NULL,
        permission TEXT NOT NULL, patterns TEXT NOT NULL, place TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX remembered_directory ON remembered (directory);
    CREATE INDEX remembered_session ON remembered (session_id);
    INSERT INTO remembered
        SELECT permission.id, session_id, '', session.updated,
            json_extract(CAST(permission.data AS TEXT), '$.permission'),
            json_extract(CAST(permission.data AS TEXT), '$.always'), ''
        FROM permission JOIN session ON session.id = session_id WHERE reply = 'always';
    CREATE TABLE decision (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, action TEXT NOT NULL, data BLOB NOT NULL);
    CREATE INDEX decision_session ON decision (session_id);
    PRAGMA user_version = 3;
    """,
)
"""The scripts of the versions 1 to 3."""
SELECT_PAID_ANSWERS = """
    WITH RECURSIVE root (id, top) AS (
        SELECT id, id FROM session WHERE parent_id IS NULL OR parent_id NOT IN (SELECT id FROM session)
        UNION SELECT session.id, top FROM session JOIN root ON session.parent_id = root.id),
    owner AS (
        SELECT session.id, parent_id, directory, coalesce(top, session.id) AS top, CAST(data AS TEXT) AS info
        FROM session LEFT JOIN root ON root.id = session.id),
    answer AS (
        SELECT message.id, message.session_id, created, CAST(data AS TEXT) AS info FROM message
        WHERE substr(data, 1, 19) = CAST('{"role":"assistant"' AS BLOB)),
    side AS (
        SELECT owner.*, key.kind, json_extract(info, key.path) AS used FROM owner
        JOIN (SELECT 'title' AS kind, '$.metadata.title' AS path
            UNION ALL SELECT 'judge', '$.metadata.judgedUsage') AS key
        WHERE json_type(info, key.path || '.created') = 'integer'
            AND json_type(info, key.path || '.cost') IN ('real', 'integer')
            AND json_type(info, key.path || '.tokens.input') = 'integer')
    SELECT min(created, CAST(strftime('%s', 'now') AS INTEGER) * 1000) AS time, session_id, owner.top AS root_id,
        answer.id AS message_id, directory, coalesce(json_extract(owner.info, '$.path'), '') AS path,
        json_extract(answer.info, '$.providerID') || '/' || json_extract(answer.info, '$.modelID') AS model,
        CASE WHEN json_extract(answer.info, '$.summary') THEN 'compaction'
            WHEN parent_id IS NULL THEN 'turn' ELSE 'subagent' END AS kind,
        json_extract(answer.info, '$.cost') AS cost,
        json_extract(answer.info, '$.tokens.input')
            + coalesce(json_extract(answer.info, '$.retried.input'), 0) AS input,
        json_extract(answer.info, '$.tokens.output')
            + coalesce(json_extract(answer.info, '$.retried.output'), 0) AS output,
        json_extract(answer.info, '$.tokens.reasoning')
            + coalesce(json_extract(answer.info, '$.retried.reasoning'), 0) AS reasoning,
        json_extract(answer.info, '$.tokens.cache.read')
            + coalesce(json_extract(answer.info, '$.retried.cache.read'), 0) AS cache_read,
        json_extract(answer.info, '$.tokens.cache.write')
            + coalesce(json_extract(answer.info, '$.retried.cache.write'), 0) AS cache_write,
        coalesce(json_extract(answer.info, '$.tokens.cache.hourWrite'), 0)
            + coalesce(json_extract(answer.info, '$.retried.cache.hourWrite'), 0) AS hour_write,
        coalesce(json_extract(answer.info, '$.tokens.estimated'), 0)
            + coalesce(json_extract(answer.info, '$.retried.estimated'), 0) AS estimated,
        (SELECT count(*) FROM part WHERE message_id = answer.id
            AND substr(data, 1, 14) = CAST('{"type":"tool"' AS BLOB)) AS tool_calls,
        0 AS is_open
    FROM answer JOIN owner ON owner.id = session_id WHERE created >= json_extract(owner.info, '$.time.created')
    UNION ALL
    SELECT min(json_extract(used, '$.created'), CAST(strftime('%s', 'now') AS INTEGER) * 1000), id, top, '', directory,
        coalesce(json_extract(info, '$.path'), ''),
        coalesce(json_extract(used, '$.providerID'), '') || '/' || coalesce(json_extract(used, '$.modelID'), ''), kind,
        json_extract(used, '$.cost'), json_extract(used, '$.tokens.input'),
        coalesce(json_extract(used, '$.tokens.output'), 0), coalesce(json_extract(used, '$.tokens.reasoning'), 0),
        coalesce(json_extract(used, '$.tokens.cache.read'), 0), coalesce(json_extract(used, '$.tokens.cache.write'), 0),
        coalesce(json_extract(used, '$.tokens.cache.hourWrite'), 0),
        coalesce(json_extract(used, '$.tokens.estimated'), 0), 0, 0
    FROM side WHERE json_extract(used, '$.created') >= json_extract(info, '$.time.created')"""
"""The rows of the ledger that a database of the versions 1 to 3 stands for,
with the columns of the table below.

A copy of a session is younger than the answers that were copied; they count once, in the session
that paid for them. What was undone or deleted before is unknown. The migration below is released:
neither text changes any more.
"""
_CREATE_TABLE = """
    CREATE TABLE spending (
        number INTEGER PRIMARY KEY, time INTEGER NOT NULL, session_id TEXT NOT NULL, root_id TEXT NOT NULL,
        message_id TEXT NOT NULL, directory TEXT NOT NULL, path TEXT NOT NULL, model TEXT NOT NULL, kind TEXT NOT NULL,
        cost REAL NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, reasoning INTEGER NOT NULL,
        cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, hour_write INTEGER NOT NULL,
        estimated INTEGER NOT NULL, tool_calls INTEGER NOT NULL, is_open INTEGER NOT NULL);
    CREATE INDEX spending_time ON spending (time);
    INSERT INTO spending SELECT NULL, * FROM ("""
_PROTECT_ROWS = """) ORDER BY time;
    CREATE TRIGGER spending_stays BEFORE DELETE ON spending
        BEGIN SELECT RAISE(ABORT, 'what was spent is never deleted'); END;
    CREATE TRIGGER spending_is_settled BEFORE UPDATE ON spending WHEN NOT old.is_open
        BEGIN SELECT RAISE(ABORT, 'what was spent never changes'); END;
    PRAGMA user_version = 4;
    """
LEDGER_MIGRATION = f"{_CREATE_TABLE}{SELECT_PAID_ANSWERS}{_PROTECT_ROWS}"
"""The script that makes and fills the table. A row stays open if the process was killed
before the answer had ended.
"""
_CREATE_VIEW = (
    "CREATE TEMP VIEW spending AS SELECT row_number() OVER (ORDER BY time) AS number, * FROM ("
)
LEDGER_VIEW = f"{_CREATE_VIEW}{SELECT_PAID_ANSWERS})"
"""Shows a database of an earlier version, which is only read,
with the rows that the migration would give it.
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
