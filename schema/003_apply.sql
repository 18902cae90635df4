-- The one way to write: broom.apply, and the lease that it checks.
-- SQLSTATEs of ours: P0L01 the lease is another's; P0V01 somebody else changed the incident.

-- Takes the lease: epoch + 1. A lease that has not expired is left to its holder, unless the caller is that
-- holder again (its data directory is locked, so the former process is dead) or knows that nobody else can be.
CREATE FUNCTION broom.lease_take(who text, ttl_ms bigint, alone boolean)
RETURNS TABLE (epoch bigint, holder text, remaining_ms bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    expiry timestamptz := clock_timestamp() + ttl_ms * interval '1 millisecond';
BEGIN
    INSERT INTO broom.lease AS l (epoch, holder, taken_at, expires_at)
    VALUES (1, who, clock_timestamp(), expiry)
    ON CONFLICT (only_row) DO UPDATE
        SET epoch = l.epoch + 1, holder = excluded.holder, taken_at = excluded.taken_at,
            expires_at = excluded.expires_at
        WHERE alone OR l.holder = who OR l.expires_at < clock_timestamp();
    RETURN QUERY SELECT l.epoch, l.holder,
        ceil(extract(epoch FROM l.expires_at - clock_timestamp()) * 1000)::bigint FROM broom.lease l;
END
$$;

CREATE FUNCTION broom.lease_renew(my_epoch bigint, ttl_ms bigint) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH renewed AS (
        UPDATE broom.lease SET expires_at = clock_timestamp() + ttl_ms * interval '1 millisecond'
        WHERE epoch = my_epoch RETURNING 1)
    SELECT EXISTS (SELECT FROM renewed)
$$;

CREATE FUNCTION broom.lease_release(my_epoch bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE broom.lease SET expires_at = clock_timestamp() - interval '1 millisecond' WHERE epoch = my_epoch
$$;

-- JSON numbers may be beyond what a real holds.
CREATE FUNCTION broom.to_real(value jsonb) RETURNS real
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE jsonb_typeof(value) WHEN 'number' THEN
        CASE WHEN abs(value::numeric) > 3.4e38 THEN (CASE WHEN value::numeric > 0 THEN 'inf' ELSE '-inf' END)::real
             WHEN abs(value::numeric) < 1e-37 THEN 0::real
             ELSE value::real END
    END
$$;

CREATE FUNCTION broom.to_reals(list jsonb) RETURNS real[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(broom.to_real(e.value) ORDER BY e.ordinality), '{}')
    FROM jsonb_array_elements(list) WITH ORDINALITY e
$$;

-- New versions of incidents: the stored row must be the one before the first of them. A batch that comes again
-- finds its last version stored, and changes nothing.
CREATE FUNCTION broom.apply_incidents(records jsonb) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    change record;
    stored record;
    changed integer := 0;
BEGIN
    FOR change IN
        SELECT r.value->>'ref' AS ref, min((r.value->>'version')::bigint) AS first,
               (array_agg(r.value ORDER BY (r.value->>'version')::bigint DESC))[1] AS latest,
               max((r.value->>'version')::bigint) AS version
        FROM jsonb_array_elements(records) r WHERE r.value->>'type' = 'incident'
        GROUP BY 1 ORDER BY 1
    LOOP
        SELECT i.version, i.record INTO stored FROM broom.incident i WHERE i.ref = change.ref FOR UPDATE;
        IF FOUND AND stored.version = change.version AND stored.record = change.latest THEN
            CONTINUE;
        END IF;
        IF coalesce(stored.version, 0) <> change.first - 1 THEN
            RAISE EXCEPTION '% is at version %, version % does not follow it', change.ref,
                coalesce(stored.version, 0), change.first USING ERRCODE = 'P0V01';
        END IF;
        INSERT INTO broom.incident (ref, number, version, record)
        VALUES (change.ref, (change.latest->>'number')::bigint, change.version, change.latest)
        ON CONFLICT (ref) DO UPDATE SET version = excluded.version, record = excluded.record;
        changed := changed + 1;
    END LOOP;
    RETURN changed;
END
$$;

-- Applies a batch whole or not at all. Records whose key is there already change nothing, so a batch may come
-- again. Returns how many records were new.
CREATE FUNCTION broom.apply(records jsonb, epoch bigint) RETURNS integer
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
       OR NOT coalesce(r.value->>'type' IN ('event', 'verdict', 'incident', 'timeline', 'decision', 'action',
           'action_outcome', 'job', 'rollup', 'raw_window', 'spare', 'control'), false)
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
    FOREACH target IN ARRAY ARRAY['timeline', 'decision', 'action', 'action_outcome', 'job', 'control'] LOOP
        CONTINUE WHEN NOT target = ANY (types);
        EXECUTE format('INSERT INTO broom.%I (key, record) SELECT r.value->>''key'', r.value '
            'FROM jsonb_array_elements($1) WITH ORDINALITY r WHERE r.value->>''type'' = $2 '
            'ORDER BY r.ordinality ON CONFLICT (key) DO NOTHING',
            CASE target WHEN 'job' THEN 'job_topology' ELSE target END) USING records, target;
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

GRANT EXECUTE ON FUNCTION broom.apply(jsonb, bigint), broom.lease_take(text, bigint, boolean),
    broom.lease_renew(bigint, bigint), broom.lease_release(bigint), broom.keep_partitions(integer) TO broom_writer;
