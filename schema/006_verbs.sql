-- What a real cluster is asked for besides: fencing, draining, and ending pods that never end by themselves.
ALTER DOMAIN broom.verb DROP CONSTRAINT verb_check;
ALTER DOMAIN broom.verb ADD CONSTRAINT verb_check CHECK (VALUE IN (
    'notify', 'capture', 'cordon', 'uncordon', 'request_checkpoint', 'promise_spare', 'release_spare',
    'restart_job', 'hand_over', 'fence', 'drain', 'force_delete'));
