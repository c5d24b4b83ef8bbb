-- Where each stream ends. The row repeats what the last event says, so that an
-- append needs one lookup and verification can see a missing end.
CREATE TABLE streams (
  n      INTEGER PRIMARY KEY,
  name   TEXT    NOT NULL UNIQUE,
  seq    INTEGER NOT NULL CHECK (seq > 0),
  id     INTEGER NOT NULL,
  digest BLOB    NOT NULL CHECK (length(digest) = 32),
  bytes  INTEGER NOT NULL
) STRICT;

-- causes is NULL for none, else the bytes that are hashed.
CREATE TABLE events (
  id      INTEGER PRIMARY KEY,
  stream  INTEGER NOT NULL,
  seq     INTEGER NOT NULL CHECK (seq > 0),
  kind    TEXT    NOT NULL,
  version INTEGER NOT NULL,
  at_ms   INTEGER NOT NULL,
  batch   TEXT    NOT NULL,
  prev    BLOB    NOT NULL,
  digest  BLOB    NOT NULL,
  causes  BLOB,
  payload BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX events_by_stream ON events (stream, seq);

CREATE TRIGGER events_are_not_updated BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TABLE records (
  kind    TEXT    NOT NULL,
  key     TEXT    NOT NULL,
  session TEXT    NOT NULL,
  state   TEXT    NOT NULL,
  rev     INTEGER NOT NULL CHECK (rev > 0),
  due_ms  INTEGER NOT NULL,
  body    BLOB    NOT NULL,
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX records_by_session ON records (session, kind, key) WHERE session <> '';
CREATE INDEX records_by_state ON records (kind, state, key) WHERE state <> '';
CREATE INDEX records_by_due ON records (due_ms) WHERE due_ms > 0;

CREATE TABLE inbox (
  session TEXT    NOT NULL,
  n       INTEGER NOT NULL CHECK (n > 0),
  id      TEXT    NOT NULL,
  body    BLOB    NOT NULL,
  PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX inbox_by_id ON inbox (session, id);

-- host is empty while nobody owns the session; inbox counts deliveries.
CREATE TABLE sessions (
  id          TEXT    PRIMARY KEY,
  host        TEXT    NOT NULL,
  incarnation INTEGER NOT NULL,
  epoch       INTEGER NOT NULL,
  inbox       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- until_ms is 0 for a host that never expires.
CREATE TABLE hosts (
  id          TEXT    PRIMARY KEY,
  incarnation INTEGER NOT NULL,
  until_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Written to learn whether writing works again after the disk was full.
CREATE TABLE probe (
  n     INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL
) STRICT;
