-- Partitions: event and verdict by month, rollup by week (it is far larger). A default partition takes what is
-- timed absurdly, so that a sender with a wrong clock cannot make tables without end.

CREATE FUNCTION broom.partition_start(parent text, moment timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
    SELECT date_trunc(CASE parent WHEN 'rollup' THEN 'week' ELSE 'month' END, moment AT TIME ZONE 'UTC')
           AT TIME ZONE 'UTC'
$$;

CREATE FUNCTION broom.partition_end(parent text, start timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
    SELECT (start AT TIME ZONE 'UTC' + CASE parent WHEN 'rollup' THEN interval '7 days' ELSE interval '1 month' END)
           AT TIME ZONE 'UTC'
$$;

CREATE FUNCTION broom.partition_name(parent text, start timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT parent || '_' || to_char(start AT TIME ZONE 'UTC', 'YYYY_MM_DD')
$$;

-- When each was made: an old recording that is replayed today is not dropped tomorrow.
CREATE TABLE broom.partition (
    name    text PRIMARY KEY,
    made_at timestamptz NOT NULL DEFAULT now()
);

-- Makes the partition that a moment falls into. False when it is there or the moment is absurd, or when rows
-- of it already lie in the default partition.
CREATE FUNCTION broom.partition_make(parent text, moment timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    start timestamptz := broom.partition_start(parent, moment);
    name text := broom.partition_name(parent, start);
BEGIN
    IF to_regclass(format('broom.%I', name)) IS NOT NULL
       OR moment < now() - interval '2 years' OR moment > now() + interval '70 days' THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('broom.partition_make'));
    EXECUTE format('CREATE TABLE IF NOT EXISTS broom.%I PARTITION OF broom.%I FOR VALUES FROM (%L) TO (%L)',
                   name, parent, start, broom.partition_end(parent, start));
    INSERT INTO broom.partition (name) VALUES (name) ON CONFLICT DO NOTHING;
    IF parent <> 'rollup' THEN
        EXECUTE format('CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON broom.%I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION broom.refuse_change()', name);
    END IF;
    RETURN true;
EXCEPTION WHEN check_violation THEN
    RETURN false;
END
$$;

CREATE TABLE broom.event_other PARTITION OF broom.event DEFAULT;
CREATE TABLE broom.verdict_other PARTITION OF broom.verdict DEFAULT;
CREATE TABLE broom.rollup_other PARTITION OF broom.rollup DEFAULT;
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON broom.event_other
    FOR EACH STATEMENT EXECUTE FUNCTION broom.refuse_change();
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON broom.verdict_other
    FOR EACH STATEMENT EXECUTE FUNCTION broom.refuse_change();

-- True when an incident needs what lies between two moments: its own time with an hour before and after it.
-- Rollups are held only by incidents that are going on; what a postmortem needs of them is in the raw window.
CREATE FUNCTION broom.is_pinned(parent text, from_at timestamptz, to_at timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM broom.incident i,
            LATERAL (SELECT broom.at((i.record->'times'->>'fault_started_ns')::bigint) AS fault,
                            broom.at((i.record->'times'->>'detected_ns')::bigint) AS detected,
                            i.status IN ('open', 'mitigated') AS going_on) t
        WHERE (parent <> 'rollup' OR t.going_on)
          AND coalesce(t.fault, t.detected, broom.at(i.time_ns)) - interval '1 hour' < to_at
          AND (t.going_on OR broom.at(i.time_ns) + interval '1 hour' >= from_at))
$$;

-- Makes partitions ahead and drops those that ended and were made keep_days ago, unless pinned. Returns what it
-- dropped.
CREATE FUNCTION broom.keep_partitions(keep_days integer) RETURNS text[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    dropped text[] := '{}';
    parent text;
    part record;
    start timestamptz;
BEGIN
    IF keep_days < 1 THEN
        RAISE EXCEPTION 'keep_days is %, but at least one day is kept', keep_days USING ERRCODE = '22023';
    END IF;
    FOREACH parent IN ARRAY ARRAY['event', 'verdict', 'rollup'] LOOP
        FOR ahead IN 0..4 LOOP
            PERFORM broom.partition_make(parent, now() + ahead * interval '7 days');
        END LOOP;
        FOR part IN
            SELECT c.relname FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
                JOIN broom.partition p ON p.name = c.relname
            WHERE h.inhparent = format('broom.%I', parent)::regclass
              AND p.made_at < now() - keep_days * interval '1 day'
            ORDER BY c.relname
        LOOP
            start := to_timestamp(right(part.relname, 10) || ' 00 +00', 'YYYY_MM_DD HH24 TZH');
            IF broom.partition_end(parent, start) < now() - keep_days * interval '1 day'
               AND NOT broom.is_pinned(parent, start, broom.partition_end(parent, start)) THEN
                EXECUTE format('DROP TABLE broom.%I', part.relname);
                DELETE FROM broom.partition p WHERE p.name = part.relname;
                dropped := dropped || part.relname::text;
            END IF;
        END LOOP;
    END LOOP;
    RETURN dropped;
END
$$;
