-- Tables. A row keeps its whole record, so that nothing a later broomd adds is lost, and shows what is searched
-- for in generated columns. Closed sets of words are domains; an integration test compares them with the C names.

-- Functions are for those they are granted to.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

CREATE DOMAIN broom.verdict_kind AS text CHECK (VALUE IN (
    'slow', 'hang', 'crash', 'fault', 'numeric', 'regression', 'clear', 'info'));
CREATE DOMAIN broom.scope AS text CHECK (VALUE IN (
    'rank', 'tray', 'rack', 'switch_tray', 'rail', 'stage', 'replica', 'group', 'job'));
CREATE DOMAIN broom.cause AS text CHECK (VALUE IN (
    'gpu', 'host', 'nvlink', 'network', 'memory', 'data', 'storage', 'unknown'));
CREATE DOMAIN broom.phase AS text CHECK (VALUE IN (
    'suspected', 'confirmed', 'awaiting_approval', 'holding', 'cordoning', 'saving', 'restarting', 'placing',
    'resuming', 'verifying', 'repairing', 'validating', 'done', 'cancelled', 'escalated'));
CREATE DOMAIN broom.incident_status AS text CHECK (VALUE IN (
    'open', 'mitigated', 'resolved', 'closed', 'merged', 'declined'));
CREATE DOMAIN broom.verb AS text CHECK (VALUE IN (
    'notify', 'capture', 'cordon', 'uncordon', 'request_checkpoint', 'promise_spare', 'release_spare',
    'restart_job', 'hand_over'));
CREATE DOMAIN broom.outcome AS text CHECK (VALUE IN (
    'succeeded', 'refused', 'transient', 'superseded', 'cancelled', 'unknown'));
CREATE DOMAIN broom.spare_state AS text CHECK (VALUE IN ('free', 'promised', 'used'));

-- Nanoseconds since the epoch as a time; 0 and less mean unknown.
CREATE FUNCTION broom.at(time_ns bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN time_ns > 0
        THEN timestamptz 'epoch' + (time_ns / 1000) * interval '1 microsecond' END
$$;

CREATE TABLE broom.lease (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch      bigint NOT NULL,
    holder     text NOT NULL,
    taken_at   timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE TABLE broom.event (
    key     text NOT NULL,
    at      timestamptz NOT NULL,
    record  jsonb NOT NULL,
    time_ns bigint NOT NULL GENERATED ALWAYS AS ((record->>'time_ns')::bigint) STORED,
    job     text GENERATED ALWAYS AS (record->>'job') STORED,
    host    text GENERATED ALWAYS AS (record->>'host') STORED,
    rack    text GENERATED ALWAYS AS (record->>'rack') STORED,
    kind    text GENERATED ALWAYS AS (record->>'kind') STORED,
    PRIMARY KEY (key, at)
) PARTITION BY RANGE (at);
CREATE INDEX event_at ON broom.event (at);
CREATE INDEX event_host ON broom.event (host, at);

CREATE TABLE broom.verdict (
    key      text NOT NULL,
    at       timestamptz NOT NULL,
    record   jsonb NOT NULL,
    time_ns  bigint NOT NULL GENERATED ALWAYS AS ((record->>'time_ns')::bigint) STORED,
    job      text NOT NULL GENERATED ALWAYS AS (record->>'job') STORED,
    incident text GENERATED ALWAYS AS (record->>'incident') STORED,
    kind     text NOT NULL GENERATED ALWAYS AS (record->'verdict'->>'kind') STORED,
    scope    text NOT NULL GENERATED ALWAYS AS (record->'verdict'->>'scope') STORED,
    cause    text NOT NULL GENERATED ALWAYS AS (record->'verdict'->>'cause') STORED,
    CHECK (kind::broom.verdict_kind IS NOT NULL),
    CHECK (scope::broom.scope IS NOT NULL),
    CHECK (cause::broom.cause IS NOT NULL),
    PRIMARY KEY (key, at)
) PARTITION BY RANGE (at);
CREATE INDEX verdict_job ON broom.verdict (job, at);
CREATE INDEX verdict_incident ON broom.verdict (incident) WHERE incident IS NOT NULL;

-- The present state of each incident; its history is the timeline, the decisions and the actions.
CREATE TABLE broom.incident (
    ref      text PRIMARY KEY CHECK (ref = 'INC-' || number),
    number   bigint NOT NULL UNIQUE CHECK (number > 0),
    version  bigint NOT NULL CHECK (version > 0),
    record   jsonb NOT NULL,
    time_ns  bigint NOT NULL GENERATED ALWAYS AS ((record->>'time_ns')::bigint) STORED,
    job      text GENERATED ALWAYS AS (record->>'job') STORED,
    kind     text NOT NULL GENERATED ALWAYS AS (record->>'kind') STORED,
    scope    text NOT NULL GENERATED ALWAYS AS (record->>'scope') STORED,
    cause    text GENERATED ALWAYS AS (record->>'cause') STORED,
    severity smallint GENERATED ALWAYS AS ((record->>'severity')::smallint) STORED,
    status   text NOT NULL GENERATED ALWAYS AS (record->>'status') STORED,
    phase    text NOT NULL GENERATED ALWAYS AS (record->>'phase') STORED,
    CHECK (kind::broom.verdict_kind IS NOT NULL),
    CHECK (scope::broom.scope IS NOT NULL),
    CHECK (cause IS NULL OR cause::broom.cause IS NOT NULL),
    CHECK (status::broom.incident_status IS NOT NULL),
    CHECK (phase::broom.phase IS NOT NULL),
    CHECK (severity BETWEEN 0 AND 4)
);
CREATE INDEX incident_time ON broom.incident (time_ns);
CREATE INDEX incident_job ON broom.incident (job);
CREATE INDEX incident_going_on ON broom.incident (number)
    WHERE phase NOT IN ('done', 'cancelled', 'escalated') OR status IN ('open', 'mitigated');

CREATE TABLE broom.timeline (
    key      text PRIMARY KEY,
    record   jsonb NOT NULL,
    time_ns  bigint NOT NULL GENERATED ALWAYS AS ((record->>'time_ns')::bigint) STORED,
    incident text NOT NULL GENERATED ALWAYS AS (record->>'incident') STORED,
    seq      bigint NOT NULL GENERATED ALWAYS AS ((record->>'seq')::bigint) STORED,
    UNIQUE (incident, seq)
);

CREATE TABLE broom.decision (
    key        text PRIMARY KEY,
    record     jsonb NOT NULL,
    time_ns    bigint NOT NULL GENERATED ALWAYS AS ((record->>'time_ns')::bigint) STORED,
    incident   text NOT NULL GENERATED ALWAYS AS (record->>'incident') STORED,
    seq        bigint NOT NULL GENERATED ALWAYS AS ((record->>'seq')::bigint) STORED,
    phase_from text NOT NULL GENERATED ALWAYS AS (record->>'phase_from') STORED,
    phase_to   text NOT NULL GENERATED ALWAYS AS (record->>'phase_to') STORED,
    CHECK (phase_from::broom.phase IS NOT NULL),
    CHECK (phase_to::broom.phase IS NOT NULL),
    UNIQUE (incident, seq)
);

-- Intents. One operation id, one intent.
CREATE TABLE broom.action (
    key          text PRIMARY KEY,
    record       jsonb NOT NULL,
    time_ns      bigint NOT NULL GENERATED ALWAYS AS ((record->>'time_ns')::bigint) STORED,
    incident     text NOT NULL GENERATED ALWAYS AS (record->>'incident') STORED,
    operation_id text NOT NULL UNIQUE GENERATED ALWAYS AS (record->>'operation_id') STORED,
    verb         text NOT NULL GENERATED ALWAYS AS (record->>'verb') STORED,
    CHECK (verb::broom.verb IS NOT NULL)
);
CREATE INDEX action_incident ON broom.action (incident);
CREATE INDEX action_time ON broom.action (time_ns);

-- An operation may first be unknown and then something final: the last one counts.
CREATE TABLE broom.action_outcome (
    key          text PRIMARY KEY,
    record       jsonb NOT NULL,
    time_ns      bigint NOT NULL GENERATED ALWAYS AS ((record->>'time_ns')::bigint) STORED,
    incident     text GENERATED ALWAYS AS (record->>'incident') STORED,
    operation_id text NOT NULL GENERATED ALWAYS AS (record->>'operation_id') STORED,
    outcome      text NOT NULL GENERATED ALWAYS AS (record->>'outcome') STORED,
    CHECK (outcome::broom.outcome IS NOT NULL)
);
CREATE INDEX action_outcome_operation ON broom.action_outcome (operation_id);
CREATE UNIQUE INDEX action_outcome_one_final ON broom.action_outcome (operation_id) WHERE outcome <> 'unknown';

CREATE TABLE broom.job_topology (
    key     text PRIMARY KEY,
    record  jsonb NOT NULL,
    time_ns bigint NOT NULL GENERATED ALWAYS AS ((record->>'time_ns')::bigint) STORED,
    job     text NOT NULL GENERATED ALWAYS AS (record->>'job') STORED
);
CREATE INDEX job_topology_job ON broom.job_topology (job, time_ns);

-- One array a job, metric and minute: the mean of each rank, NULL where a rank sent nothing.
CREATE TABLE broom.rollup (
    job     text NOT NULL,
    metric  text NOT NULL,
    at      timestamptz NOT NULL,
    ranks   integer NOT NULL,
    "values" real[] NOT NULL,
    PRIMARY KEY (job, metric, at)
) PARTITION BY RANGE (at);
CREATE INDEX rollup_at ON broom.rollup USING brin (at);

-- The samples round an incident, in compressed columns; data is opaque to SQL.
CREATE TABLE broom.raw_window (
    key      text PRIMARY KEY,
    record   jsonb NOT NULL,
    data     bytea NOT NULL,
    time_ns  bigint NOT NULL GENERATED ALWAYS AS ((record->>'time_ns')::bigint) STORED,
    incident text NOT NULL GENERATED ALWAYS AS (record->>'incident') STORED,
    job      text GENERATED ALWAYS AS (record->>'job') STORED,
    metric   text NOT NULL GENERATED ALWAYS AS (record->>'metric') STORED
);
ALTER TABLE broom.raw_window ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX raw_window_incident ON broom.raw_window (incident);

CREATE TABLE broom.spare (
    node     text PRIMARY KEY,
    state    broom.spare_state NOT NULL,
    job      text,
    incident text,
    time_ns  bigint NOT NULL
);

CREATE TABLE broom.control (
    key     text PRIMARY KEY,
    record  jsonb NOT NULL,
    time_ns bigint NOT NULL GENERATED ALWAYS AS ((record->>'time_ns')::bigint) STORED,
    what    text NOT NULL GENERATED ALWAYS AS (record->>'what') STORED,
    number  bigint GENERATED ALWAYS AS IDENTITY
);

-- What happened stays: not even the owner changes or deletes a row. Old partitions are dropped whole, by
-- broom.keep_partitions.
CREATE FUNCTION broom.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of %.% are never changed or deleted', TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['event', 'verdict', 'timeline', 'decision', 'action', 'action_outcome',
                                'job_topology', 'control'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON broom.%I '
                       'FOR EACH ROW EXECUTE FUNCTION broom.refuse_change()', name);
        EXECUTE format('CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON broom.%I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION broom.refuse_change()', name);
    END LOOP;
END
$$;
CREATE TRIGGER never_deleted BEFORE DELETE ON broom.incident
    FOR EACH ROW EXECUTE FUNCTION broom.refuse_change();
CREATE TRIGGER never_deleted_whole BEFORE TRUNCATE ON broom.incident
    FOR EACH STATEMENT EXECUTE FUNCTION broom.refuse_change();
