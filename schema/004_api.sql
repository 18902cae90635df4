-- What people and the API read. The views are a contract: columns are added, never renamed or removed.

CREATE SCHEMA broom_api;
COMMENT ON SCHEMA broom_api IS 'Read-only views and functions of Broomwagon. All times are UTC; columns that end in _s are seconds.';

CREATE FUNCTION broom.seconds_between(from_ns text, to_ns text) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN from_ns::bigint > 0 AND to_ns::bigint > 0
        THEN round((to_ns::numeric - from_ns::numeric) / 1e9, 3)::double precision END
$$;

CREATE FUNCTION broom.texts(list jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(e.value ORDER BY e.ordinality), '{}')
    FROM jsonb_array_elements_text(CASE jsonb_typeof(list) WHEN 'array' THEN list ELSE '[]' END)
         WITH ORDINALITY e
$$;

CREATE VIEW broom_api.incidents AS
SELECT i.ref, i.number, i.job, i.kind, i.scope, i.record->>'domain' AS domain, i.cause, i.severity, i.status, i.phase,
       i.record->>'mode' AS mode, i.record->>'policy' AS policy, i.record->>'rule' AS rule,
       i.record->>'policy_hash' AS policy_hash, i.record->>'plan' AS plan,
       broom.texts(i.record->'nodes') AS nodes, broom.texts(i.record->'ranks')::integer[] AS ranks,
       broom.texts(i.record->'victims')::integer[] AS victims, i.record->>'merged_into' AS merged_into,
       i.record->>'waiting_for' AS waiting_for,
       broom.at((t.times->>'fault_started_ns')::bigint) AS fault_started_at,
       broom.at((t.times->>'detected_ns')::bigint) AS detected_at,
       broom.at((t.times->>'decided_ns')::bigint) AS decided_at,
       broom.at((t.times->>'acted_ns')::bigint) AS acted_at,
       broom.at((t.times->>'mitigated_ns')::bigint) AS mitigated_at,
       broom.at((t.times->>'resolved_ns')::bigint) AS resolved_at,
       broom.at((t.times->>'closed_ns')::bigint) AS closed_at,
       broom.at(i.time_ns) AS changed_at,
       broom.seconds_between(t.times->>'fault_started_ns', t.times->>'detected_ns') AS time_to_detect_s,
       broom.seconds_between(t.times->>'detected_ns', t.times->>'decided_ns') AS time_to_decide_s,
       broom.seconds_between(t.times->>'decided_ns', t.times->>'acted_ns') AS time_to_act_s,
       broom.seconds_between(t.times->>'fault_started_ns', t.times->>'mitigated_ns') AS time_to_mitigate_s,
       (i.record->'cost'->>'steps_lost')::bigint AS steps_lost,
       (i.record->'cost'->>'gpu_hours')::double precision AS gpu_hours
FROM broom.incident i, LATERAL (SELECT i.record->'times' AS times) t;
COMMENT ON VIEW broom_api.incidents IS 'One row an incident as it stands now; what happened to it is in timeline, decisions and actions.';
COMMENT ON COLUMN broom_api.incidents.ref IS 'INC-n, the name people use; never used twice.';
COMMENT ON COLUMN broom_api.incidents.status IS 'For people: open, mitigated, resolved, closed, merged or declined.';
COMMENT ON COLUMN broom_api.incidents.phase IS 'For the machine: where the remediation stands.';
COMMENT ON COLUMN broom_api.incidents.severity IS '0 is P0, the worst; 4 is P4.';
COMMENT ON COLUMN broom_api.incidents.mode IS 'What was allowed: observe, approve or enforce.';
COMMENT ON COLUMN broom_api.incidents.victims IS 'Ranks that stopped because of this fault without being at fault.';
COMMENT ON COLUMN broom_api.incidents.waiting_for IS 'What it waits for, as a sentence; NULL when nothing.';
COMMENT ON COLUMN broom_api.incidents.time_to_detect_s IS 'From the estimated start of the fault to the verdict.';
COMMENT ON COLUMN broom_api.incidents.time_to_decide_s IS 'From the verdict to the decision to act.';
COMMENT ON COLUMN broom_api.incidents.time_to_act_s IS 'From the decision to the first action.';
COMMENT ON COLUMN broom_api.incidents.time_to_mitigate_s IS 'From the start of the fault to new steps at the old pace.';

CREATE VIEW broom_api.timeline AS
SELECT t.incident, t.seq, broom.at(t.time_ns) AS at, t.record->>'kind' AS kind, t.record->>'actor' AS actor,
       t.record->>'text' AS text, t.record->'details' AS details
FROM broom.timeline t;
COMMENT ON VIEW broom_api.timeline IS 'What happened to each incident, in sentences, in order of seq; append-only.';
COMMENT ON COLUMN broom_api.timeline.actor IS 'broomd, or whom authentication proved.';

CREATE VIEW broom_api.decisions AS
SELECT d.incident, d.seq, broom.at(d.time_ns) AS at, d.record->>'fsm_rule' AS fsm_rule,
       d.record->>'policy_rule' AS policy_rule, d.record->>'policy_hash' AS policy_hash, d.record->>'event' AS event,
       d.record->>'command' AS command, d.phase_from, d.phase_to, broom.texts(d.record->'facts') AS facts,
       d.record->'values' AS "values", d.record->>'mode' AS mode, (d.record->>'executed')::boolean AS executed,
       d.record->>'reason' AS reason
FROM broom.decision d;
COMMENT ON VIEW broom_api.decisions IS 'Every decision with the rule that made it and the values that it saw; append-only.';
COMMENT ON COLUMN broom_api.decisions.executed IS 'False: it would have been done, had the mode allowed it.';
COMMENT ON COLUMN broom_api.decisions.facts IS 'The facts that held.';

CREATE VIEW broom.action_with_outcome AS
SELECT a.key, a.incident, a.operation_id, a.verb, a.time_ns, a.record, o.outcome, o.time_ns AS outcome_ns,
       o.record AS outcome_record
FROM broom.action a
LEFT JOIN LATERAL (
    SELECT o.outcome, o.time_ns, o.record FROM broom.action_outcome o WHERE o.operation_id = a.operation_id
    ORDER BY o.outcome = 'unknown', o.time_ns DESC LIMIT 1) o ON true;

CREATE VIEW broom_api.actions AS
SELECT a.incident, a.operation_id, a.verb, broom.texts(a.record->'nodes') AS nodes,
       broom.texts(a.record->'spares') AS spares, a.record->'params' AS params, a.record->>'actuator' AS actuator,
       a.record->>'mode' AS mode, a.record->>'reason' AS reason, broom.at(a.time_ns) AS intended_at, a.outcome,
       broom.at(a.outcome_ns) AS outcome_at, a.outcome_record->>'reason' AS outcome_reason,
       a.outcome_record->>'response' AS response,
       round((a.outcome_record->>'took_ns')::numeric / 1e9, 3)::double precision AS took_s
FROM broom.action_with_outcome a;
COMMENT ON VIEW broom_api.actions IS 'Each intent to act with its outcome; outcome NULL: under way, or the daemon died in between.';
COMMENT ON COLUMN broom_api.actions.response IS 'What the cluster answered.';

CREATE VIEW broom_api.verdicts AS
SELECT v.at, v.job, v.kind, v.scope, v.record->'verdict'->>'id' AS id, v.cause,
       (v.record->'verdict'->>'step')::bigint AS step, (v.record->'verdict'->>'since_step')::bigint AS since_step,
       (v.record->'verdict'->>'slowdown')::double precision AS slowdown,
       (v.record->'verdict'->>'gain')::double precision AS gain,
       (v.record->'verdict'->>'confidence')::double precision AS confidence,
       (v.record->'verdict'->>'evict')::boolean AS evict, broom.texts(v.record->'verdict'->'nodes') AS nodes,
       broom.texts(v.record->'verdict'->'ranks')::integer[] AS ranks, v.record->'verdict'->'evidence' AS evidence,
       v.incident, v.record->>'source' AS source
FROM broom.verdict v;
COMMENT ON VIEW broom_api.verdicts IS 'What the detectors said, whether or not anything followed from it.';
COMMENT ON COLUMN broom_api.verdicts.gain IS 'The part of the job''s step time that this fault costs by itself.';
COMMENT ON COLUMN broom_api.verdicts.evict IS 'The advice to replace nodes; the policy decides.';

CREATE VIEW broom_api.events AS
SELECT e.at, e.job, e.host, e.record->>'gpu' AS gpu, e.rack, e.record->>'rail' AS rail, e.kind,
       (e.record->>'code')::double precision AS code, (e.record->>'subcode')::double precision AS subcode,
       e.record->>'tray' AS tray, e.record->>'pci' AS pci, e.record->>'uuid' AS uuid, e.record->>'message' AS message,
       e.record->>'source' AS source
FROM broom.event e;
COMMENT ON VIEW broom_api.events IS 'What the hardware and its watchers reported: Xids, link errors, nodes lost.';
COMMENT ON COLUMN broom_api.events.code IS 'For kind xid: the number of the Xid.';
COMMENT ON COLUMN broom_api.events.source IS 'Who reported it.';

CREATE VIEW broom_api.jobs AS
SELECT j.job, broom.at(j.time_ns) AS since, (j.record->>'attempt')::bigint AS attempt,
       (j.record->'document'->>'world_size')::integer AS world_size, j.record->'document' AS document
FROM broom.job_topology j;
COMMENT ON VIEW broom_api.jobs IS 'Where the ranks of each job stood: a row whenever that changed.';
COMMENT ON COLUMN broom_api.jobs.document IS 'The job file: world size, parallelism, topology, node and GPU of each rank.';

CREATE VIEW broom_api.rollups AS
SELECT r.job, r.metric, r.at, (v.ordinality - 1)::integer AS rank, v.value
FROM broom.rollup r, unnest(r."values") WITH ORDINALITY AS v (value, ordinality);
COMMENT ON VIEW broom_api.rollups IS 'One-minute mean of each metric and rank. Give job, metric and at, or it reads everything.';
COMMENT ON COLUMN broom_api.rollups.value IS 'NULL when the rank sent nothing in that minute.';

CREATE VIEW broom_api.spares AS
SELECT s.node, s.state, s.job, s.incident, broom.at(s.time_ns) AS since FROM broom.spare s;
COMMENT ON VIEW broom_api.spares IS 'The ledger of spare nodes: free, promised to an incident, or used.';

CREATE VIEW broom_api.controls AS
SELECT broom.at(c.time_ns) AS at, c.what, c.record->>'actor' AS actor, c.record->>'text' AS text
FROM broom.control c;
COMMENT ON VIEW broom_api.controls IS 'When people paused and resumed, and when the breaker opened and closed.';

-- The functions below give one JSON value each, in the shapes of the HTTP API.

CREATE FUNCTION broom_api.incidents_json(since_ns bigint, only_status text, only_job text) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object('incidents', coalesce(jsonb_agg(i.record ORDER BY i.number DESC), '[]'))
    FROM broom.incident i
    WHERE (i.time_ns >= coalesce(since_ns, 0) OR i.status IN ('open', 'mitigated'))
      AND (only_status IS NULL OR i.status = only_status) AND (only_job IS NULL OR i.job = only_job)
$$;
COMMENT ON FUNCTION broom_api.incidents_json IS 'Incidents that changed since a moment, or are going on; newest first.';

CREATE FUNCTION broom_api.incidents_json(since interval) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT broom_api.incidents_json((extract(epoch FROM now() - since) * 1e9)::bigint, NULL, NULL)
$$;

CREATE FUNCTION broom.timeline_of(ref text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_agg(t.record ORDER BY t.seq), '[]') FROM broom.timeline t WHERE t.incident = ref
$$;

CREATE FUNCTION broom.decisions_of(ref text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_agg(d.record ORDER BY d.seq), '[]') FROM broom.decision d WHERE d.incident = ref
$$;

CREATE FUNCTION broom.actions_of(ref text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_agg(a.record || jsonb_build_object('outcome', a.outcome_record)
                              ORDER BY a.time_ns, a.operation_id), '[]')
    FROM broom.action_with_outcome a WHERE a.incident = ref
$$;

CREATE FUNCTION broom_api.incident_json(ref text) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT i.record || jsonb_build_object('timeline', broom.timeline_of(i.ref),
               'decisions', broom.decisions_of(i.ref), 'actions', broom.actions_of(i.ref))
    FROM broom.incident i WHERE i.ref = incident_json.ref
$$;
COMMENT ON FUNCTION broom_api.incident_json IS 'One incident with its timeline, decisions and actions; NULL when unknown.';

CREATE FUNCTION broom_api.timeline_json(ref text) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object('incident', i.ref, 'timeline', broom.timeline_of(i.ref))
    FROM broom.incident i WHERE i.ref = timeline_json.ref
$$;
COMMENT ON FUNCTION broom_api.timeline_json IS 'The timeline of one incident; NULL when unknown.';

-- Where the job stood when the fault was seen: the last layout before it, else the first one.
CREATE FUNCTION broom.layout_at(of_job text, moment_ns bigint) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT j.record FROM broom.job_topology j WHERE j.job = of_job
    ORDER BY j.time_ns <= moment_ns DESC,
             CASE WHEN j.time_ns <= moment_ns THEN -j.time_ns ELSE j.time_ns END
    LIMIT 1
$$;

CREATE FUNCTION broom.hosts_of(layout jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(DISTINCT r.value->>'node') FILTER (WHERE r.value->>'node' IS NOT NULL), '{}')
    FROM jsonb_array_elements(CASE jsonb_typeof(layout->'document'->'ranks')
        WHEN 'array' THEN layout->'document'->'ranks' ELSE '[]' END) r
$$;

CREATE FUNCTION broom.racks_of(layout jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(DISTINCT r.value->>'rack') FILTER (WHERE r.value->>'rack' IS NOT NULL), '{}')
    FROM jsonb_array_elements(CASE jsonb_typeof(layout->'document'->'topology'->'racks')
        WHEN 'array' THEN layout->'document'->'topology'->'racks' ELSE '[]' END) r
$$;

-- Events of the job's nodes and racks, and of the incident's own nodes, in its time; the first 10,000.
CREATE FUNCTION broom.events_of(incident jsonb, layout jsonb, from_at timestamptz, to_at timestamptz) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_agg(e.record ORDER BY e.time_ns, e.key), '[]')
    FROM (SELECT e.record, e.time_ns, e.key FROM broom.event e
          WHERE e.at BETWEEN from_at AND to_at
            AND (e.job = incident->>'job'
                 OR e.host = ANY (broom.hosts_of(layout) || broom.texts(incident->'nodes'))
                 OR (e.host IS NULL AND e.rack = ANY (broom.racks_of(layout)))
                 OR (e.host IS NULL AND e.rack IS NULL AND e.job IS NULL))
          ORDER BY e.time_ns, e.key LIMIT 10000) e
$$;

CREATE FUNCTION broom.raw_windows_of(ref text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_agg(w.record || jsonb_build_object('data', translate(encode(w.data, 'base64'), E'\n', ''))
                              ORDER BY w.metric, w.time_ns, w.key), '[]')
    FROM broom.raw_window w WHERE w.incident = ref
$$;

CREATE FUNCTION broom_api.export_json(ref text) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object(
        'incident', i.record, 'timeline', broom.timeline_of(i.ref), 'decisions', broom.decisions_of(i.ref),
        'actions', broom.actions_of(i.ref),
        'verdicts', (SELECT coalesce(jsonb_agg(v.record ORDER BY v.time_ns, v.key), '[]') FROM broom.verdict v
                     WHERE v.job = i.job AND v.at BETWEEN w.from_at AND w.to_at),
        'events', broom.events_of(i.record, l.layout, w.from_at, w.to_at),
        'raw_windows', broom.raw_windows_of(i.ref), 'job', l.layout)
    FROM broom.incident i,
        LATERAL (SELECT greatest((i.record->'times'->>'fault_started_ns')::bigint, 0) AS fault_ns,
                        greatest((i.record->'times'->>'detected_ns')::bigint, 0) AS detected_ns) t,
        LATERAL (SELECT broom.at(coalesce(nullif(t.fault_ns, 0), nullif(t.detected_ns, 0), i.time_ns))
                            - interval '15 minutes' AS from_at,
                        broom.at(i.time_ns) + interval '5 minutes' AS to_at) w,
        LATERAL (SELECT broom.layout_at(i.job, coalesce(nullif(t.detected_ns, 0), i.time_ns)) AS layout) l
    WHERE i.ref = export_json.ref
$$;
COMMENT ON FUNCTION broom_api.export_json IS 'Everything about one incident: its records, its job''s verdicts and events of that time, the raw samples, the layout; NULL when unknown.';

CREATE FUNCTION broom_api.jobs_json(only_job text) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(jsonb_agg(j.record ORDER BY j.job, j.time_ns), '[]')
    FROM broom.job_topology j WHERE only_job IS NULL OR j.job = only_job
$$;
COMMENT ON FUNCTION broom_api.jobs_json IS 'Where the ranks of a job stood, oldest first.';

CREATE FUNCTION broom_api.spending_json(since_ns bigint) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object('verb', a.verb, 'nodes', a.record->'nodes', 'job', i.job,
               'incident', a.incident, 'time_ns', a.time_ns) ORDER BY a.time_ns, a.operation_id), '[]')
    FROM broom.action_with_outcome a LEFT JOIN broom.incident i ON i.ref = a.incident
    WHERE a.time_ns >= coalesce(since_ns, 0) AND a.outcome IN ('succeeded', 'unknown')
$$;
COMMENT ON FUNCTION broom_api.spending_json IS 'Actions that happened or may have, for budgets.';

CREATE FUNCTION broom_api.restore_json(since_ns bigint) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object(
        'incidents', (SELECT coalesce(jsonb_agg(i.record ORDER BY i.number), '[]') FROM broom.incident i
                      WHERE i.phase NOT IN ('done', 'cancelled', 'escalated') OR i.status IN ('open', 'mitigated')
                         OR i.time_ns >= coalesce(since_ns, 0)),
        'next_number', (SELECT coalesce(max(i.number), 0) + 1 FROM broom.incident i),
        'paused', coalesce(pause.what = 'pause', false),
        'paused_by', CASE WHEN pause.what = 'pause' THEN pause.record->>'actor' END,
        'paused_text', CASE WHEN pause.what = 'pause' THEN pause.record->>'text' END,
        'breaker_open', coalesce(breaker.what = 'breaker_open', false),
        'breaker_reason', CASE WHEN breaker.what = 'breaker_open' THEN breaker.record->>'text' END,
        'spares', (SELECT coalesce(jsonb_agg(jsonb_build_object('node', s.node, 'state', s.state, 'job', s.job,
                       'incident', s.incident) ORDER BY s.node), '[]') FROM broom.spare s),
        'jobs', (SELECT coalesce(jsonb_agg(j.record ORDER BY j.job), '[]')
                 FROM (SELECT DISTINCT ON (t.job) t.job, t.record FROM broom.job_topology t
                       WHERE t.time_ns >= coalesce(since_ns, 0) ORDER BY t.job, t.time_ns DESC) j))
    FROM (SELECT) one
    LEFT JOIN LATERAL (SELECT c.what, c.record FROM broom.control c WHERE c.what IN ('pause', 'resume')
                       ORDER BY c.number DESC LIMIT 1) pause ON true
    LEFT JOIN LATERAL (SELECT c.what, c.record FROM broom.control c WHERE c.what IN ('breaker_open', 'breaker_close')
                       ORDER BY c.number DESC LIMIT 1) breaker ON true
$$;
COMMENT ON FUNCTION broom_api.restore_json IS 'What broomd needs to go on after a restart.';

GRANT USAGE ON SCHEMA broom_api TO broom_reader, broom_writer;
GRANT SELECT ON ALL TABLES IN SCHEMA broom_api TO broom_reader, broom_writer;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA broom_api TO broom_reader, broom_writer;
-- The views run them with the rights of whoever asks.
GRANT EXECUTE ON FUNCTION broom.at(bigint), broom.texts(jsonb), broom.seconds_between(text, text) TO broom_reader, broom_writer;
