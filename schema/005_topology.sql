-- Topology: what each source said of each node, and since when. Records that are stored whole under their key become
-- rows of a table, so that another kind of them is a row and not a new broom.apply.

CREATE TABLE broom.plain_record (
    number    integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    type      text NOT NULL UNIQUE,
    stored_in name NOT NULL
);
INSERT INTO broom.plain_record (type, stored_in) VALUES
    ('timeline', 'timeline'), ('decision', 'decision'), ('action', 'action'), ('action_outcome', 'action_outcome'),
    ('job', 'job_topology'), ('control', 'control'), ('topology', 'topology');

CREATE DOMAIN broom.topology_source AS text CHECK (VALUE IN (
    'file', 'label', 'hypernode', 'slurm', 'clique', 'hello'));

CREATE TABLE broom.topology (
    key     text PRIMARY KEY,
    record  jsonb NOT NULL,
    time_ns bigint NOT NULL GENERATED ALWAYS AS ((record->>'time_ns')::bigint) STORED,
    node    text NOT NULL GENERATED ALWAYS AS (record->>'node') STORED,
    source  text NOT NULL GENERATED ALWAYS AS (record->>'source') STORED,
    rack    text GENERATED ALWAYS AS (record->>'rack') STORED,
    number  bigint GENERATED ALWAYS AS IDENTITY,
    CHECK (source::broom.topology_source IS NOT NULL)
);
CREATE INDEX topology_node ON broom.topology (node, source, time_ns DESC, number DESC);
CREATE INDEX topology_rack ON broom.topology (rack);

-- A broomd that starts hears everything again: what the newest row says already is no change.
CREATE FUNCTION broom.topology_only_changes() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    newest jsonb;
BEGIN
    SELECT t.record INTO newest FROM broom.topology t
    WHERE t.node = NEW.record->>'node' AND t.source = NEW.record->>'source'
    ORDER BY t.time_ns DESC, t.number DESC LIMIT 1;
    IF newest - ARRAY['key', 'time_ns', 'answer'] = NEW.record - ARRAY['key', 'time_ns', 'answer'] THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER only_changes BEFORE INSERT ON broom.topology
    FOR EACH ROW EXECUTE FUNCTION broom.topology_only_changes();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON broom.topology
    FOR EACH ROW EXECUTE FUNCTION broom.refuse_change();
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON broom.topology
    FOR EACH STATEMENT EXECUTE FUNCTION broom.refuse_change();

-- Applies a batch whole or not at all. Records whose key is there already change nothing, so a batch may come
-- again. Returns how many records were new.
CREATE OR REPLACE FUNCTION broom.apply(records jsonb, epoch bigint) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    types text[];
    bad record;
    part record;
    current_epoch bigint;
    total integer := 0;
    added integer;
    target text;
BEGIN
    -- Held to the end of the transaction: nobody takes the lease in the middle of it.
    SELECT l.epoch INTO current_epoch FROM broom.lease l FOR SHARE;
    IF current_epoch IS DISTINCT FROM apply.epoch THEN
        RAISE EXCEPTION 'the lease is at epoch %, not %', coalesce(current_epoch, 0), apply.epoch
            USING ERRCODE = 'P0L01';
    END IF;

    SELECT r.ordinality, r.value INTO bad FROM jsonb_array_elements(records) WITH ORDINALITY r
    WHERE coalesce(r.value->>'key', '') = '' OR jsonb_typeof(r.value->'time_ns') IS DISTINCT FROM 'number'
       OR NOT coalesce(r.value->>'type' IN ('event', 'verdict', 'incident', 'rollup', 'raw_window', 'spare')
           OR EXISTS (SELECT FROM broom.plain_record p WHERE p.type = r.value->>'type'), false)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'record % of the batch has no key, no time_ns or a type that is not known: %',
            bad.ordinality, left(bad.value::text, 200) USING ERRCODE = '22023';
    END IF;
    SELECT array_agg(DISTINCT r.value->>'type') INTO types FROM jsonb_array_elements(records) r;

    IF 'incident' = ANY (types) THEN
        total := total + broom.apply_incidents(records);
    END IF;

    FOREACH target IN ARRAY ARRAY['event', 'verdict'] LOOP
        CONTINUE WHEN NOT target = ANY (types);
        FOR part IN SELECT DISTINCT broom.partition_start(target, broom.at((r.value->>'time_ns')::bigint)) AS start
            FROM jsonb_array_elements(records) r WHERE r.value->>'type' = target
        LOOP
            PERFORM broom.partition_make(target, part.start);
        END LOOP;
        EXECUTE format('INSERT INTO broom.%I (key, at, record) '
            'SELECT r.value->>''key'', coalesce(broom.at((r.value->>''time_ns'')::bigint), timestamptz ''epoch''), '
            'r.value FROM jsonb_array_elements($1) WITH ORDINALITY r WHERE r.value->>''type'' = $2 '
            'ORDER BY r.ordinality ON CONFLICT DO NOTHING', target) USING records, target;
        GET DIAGNOSTICS added = ROW_COUNT;
        total := total + added;
    END LOOP;

    -- The keys make repeats harmless; any other clash, such as two intents of one operation, is an error.
    FOR part IN SELECT p.type, p.stored_in FROM broom.plain_record p WHERE p.type = ANY (types)
        ORDER BY p.number
    LOOP
        EXECUTE format('INSERT INTO broom.%I (key, record) SELECT r.value->>''key'', r.value '
            'FROM jsonb_array_elements($1) WITH ORDINALITY r WHERE r.value->>''type'' = $2 '
            'ORDER BY r.ordinality ON CONFLICT (key) DO NOTHING', part.stored_in) USING records, part.type;
        GET DIAGNOSTICS added = ROW_COUNT;
        total := total + added;
    END LOOP;

    IF 'rollup' = ANY (types) THEN
        FOR part IN SELECT DISTINCT broom.partition_start('rollup', broom.at((r.value->>'minute_ns')::bigint)) AS start
            FROM jsonb_array_elements(records) r WHERE r.value->>'type' = 'rollup'
        LOOP
            PERFORM broom.partition_make('rollup', part.start);
        END LOOP;
        INSERT INTO broom.rollup (job, metric, at, ranks, "values")
        SELECT r.value->>'job', r.value->>'metric', broom.at((r.value->>'minute_ns')::bigint),
               (r.value->>'ranks')::integer, broom.to_reals(r.value->'values')
        FROM jsonb_array_elements(records) r WHERE r.value->>'type' = 'rollup'
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
        total := total + added;
    END IF;

    IF 'raw_window' = ANY (types) THEN
        INSERT INTO broom.raw_window (key, record, data)
        SELECT r.value->>'key', r.value - 'data', decode(r.value->>'data', 'base64')
        FROM jsonb_array_elements(records) r WHERE r.value->>'type' = 'raw_window'
        ON CONFLICT (key) DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
        total := total + added;
    END IF;

    IF 'spare' = ANY (types) THEN
        INSERT INTO broom.spare AS s (node, state, job, incident, time_ns)
        SELECT DISTINCT ON (r.value->>'node') r.value->>'node', r.value->>'state', r.value->>'job',
               r.value->>'incident', (r.value->>'time_ns')::bigint
        FROM jsonb_array_elements(records) WITH ORDINALITY r WHERE r.value->>'type' = 'spare'
        ORDER BY r.value->>'node', r.ordinality DESC
        ON CONFLICT (node) DO UPDATE SET state = excluded.state, job = excluded.job,
            incident = excluded.incident, time_ns = excluded.time_ns
        WHERE excluded.time_ns >= s.time_ns;
        GET DIAGNOSTICS added = ROW_COUNT;
        total := total + added;
    END IF;
    RETURN total;
END
$$;

CREATE VIEW broom_api.topology_history AS
SELECT t.node, t.source, broom.at(t.time_ns) AS at, t.rack, t.record->>'nvlink_domain' AS nvlink_domain,
       (t.record->>'tray')::integer AS tray, (t.record->>'rails')::integer AS rails,
       (t.record->>'silent')::boolean AS silent, t.record->'answer'->>'rack' AS answer_rack,
       t.record->'answer'->>'source' AS answer_source
FROM broom.topology t;
COMMENT ON VIEW broom_api.topology_history IS 'Every change of what a source says of a node: which rack, NVLink domain and tray; append-only.';
COMMENT ON COLUMN broom_api.topology_history.source IS 'file, label, hypernode, slurm, clique or hello: most trusted first.';
COMMENT ON COLUMN broom_api.topology_history.silent IS 'True: the source says nothing since then; what stands here is its last word.';
COMMENT ON COLUMN broom_api.topology_history.answer_rack IS 'The rack that all sources together gave after this change.';

CREATE VIEW broom_api.topology AS
SELECT DISTINCT ON (t.node, t.source) t.node, t.source, broom.at(t.time_ns) AS since, t.rack,
       t.record->>'nvlink_domain' AS nvlink_domain, (t.record->>'tray')::integer AS tray,
       (t.record->>'rails')::integer AS rails, (t.record->>'silent')::boolean AS silent
FROM broom.topology t
ORDER BY t.node, t.source, t.time_ns DESC, t.number DESC;
COMMENT ON VIEW broom_api.topology IS 'What each source says of each node at present, and since when.';

GRANT SELECT ON broom_api.topology, broom_api.topology_history TO broom_reader, broom_writer;
