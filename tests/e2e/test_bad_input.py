#!/usr/bin/env python3
"""Bad input against a real broomd: always a clear answer, and nothing lost."""
import gzip
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

from daemon import BROOM, Daemon, run, wait_for

JOB = {'job': 'e2e/bad', 'world_size': 8, 'workload': {'kind': 'volcano', 'uid': 'one'},
       'topology': {'racks': [{'rack': 'r1', 'trays': ['n0', 'n1']}]},
       'ranks': [{'rank': r, 'node': f'n{r // 4}', 'gpu': r % 4} for r in range(8)]}


def now_ns():
    return time.time_ns()


def put(daemon, document):
    code, text = daemon.request('PUT', '/api/v1/jobs/' + document['job'], json.dumps(document))
    return code, json.loads(text)


def step(rank, number, more='', time_ns=None):
    return f'step,job=e2e/bad,rank={rank} step={number}i,step_ms=100{more} {time_ns or now_ns()}\n'


def test_bad_lines_cost_only_themselves():
    code, text = daemon.write(step(0, 1) + 'step,job=e2e/bad,rank=x step=1\n' + step(1, 1) + step(99, 1))
    answer = json.loads(text)
    assert code == 400 and answer['accepted'] == 2 and answer['line'] == 2, text
    assert [bad['line'] for bad in answer['bad']] == [2, 4], text
    assert 'beyond' in answer['bad'][1]['cause'], text
    assert daemon.write(step(2, 1)) == (204, '')


def test_half_a_gzip_body_and_a_bomb_are_refused():
    packed = gzip.compress((step(0, 2) * 500).encode())
    code, text = daemon.write(packed[:len(packed) // 2], **{'Content-Encoding': 'gzip'})
    assert code == 400 and 'error' in text, (code, text)
    assert daemon.write(gzip.compress(step(0, 3).encode()), **{'Content-Encoding': 'gzip'})[0] == 204
    bomb = gzip.compress(b'\0' * (200 << 20))
    code, text = daemon.write(bomb, **{'Content-Encoding': 'gzip'})
    assert code == 413 and 'error' in text, (code, text)


def test_a_line_of_ten_megabytes_costs_only_itself():
    code, text = daemon.write('x' * (10 << 20) + '\n' + step(0, 4))
    assert code == 400 and json.loads(text)['accepted'] == 1, (code, text[:300])


def test_not_a_number_and_huge_values_hurt_nobody():
    assert daemon.write(step(0, 5, ',loss=NaN,compute_ms=1e308') + step(1, 5, ',loss=nan,sm=-1e308'))[0] == 204
    assert daemon.get('/api/v1/jobs/e2e/bad')['job'] == 'e2e/bad'


def test_a_clock_an_hour_off_moves_nobody_else():
    base = now_ns()
    for number in range(6, 40):
        lines = ''.join(step(rank, number, '', base + number * 10**8 + (3600 * 10**9 if rank == 3 else 0)) for rank in range(8))
        assert daemon.write(lines)[0] == 204
    job = daemon.get('/api/v1/jobs/e2e/bad')
    assert job['step'] >= 37, job['step']
    assert not [i for i in daemon.incidents() if i['kind'] in ('hang', 'crash')], daemon.incidents()


def test_a_host_that_is_not_the_rank_s_is_refused():
    line = f'beat,job=e2e/bad,rank=0,host=n1 step=1i,phase="compute" {now_ns()}\n'
    code, text = daemon.write(line)
    assert code == 400 and 'hello' in json.loads(text)['bad'][0]['cause'], text


def test_two_live_jobs_of_one_name_are_refused():
    code, answer = put(daemon, dict(JOB, workload={'kind': 'volcano', 'uid': 'two'}))
    assert code == 409 and 'unique' in answer['error'], (code, answer)
    assert put(daemon, JOB)[0] == 200


def test_a_node_in_no_rack_is_named():
    wrong = dict(JOB, job='e2e/wrong', ranks=[{'rank': 0, 'node': 'nowhere'}])
    code, answer = put(daemon, wrong)
    assert code == 400 and "ranks[0].node: 'nowhere' is in no rack" in answer['error'], (code, answer)


def test_an_unknown_job_says_what_to_do():
    code, text = daemon.write(f'step,job=nobody,rank=0 step=1i,step_ms=1 {now_ns()}\n')
    assert code == 400 and 'hello' in text, (code, text)


def test_an_unknown_option_names_the_near_one():
    done = subprocess.run([BROOM, 'incidents', '--sinse', '1h'], capture_output=True, text=True)
    assert done.returncode == 2 and 'since' in done.stderr, done.stderr


def test_a_policy_with_five_mistakes_gives_five_messages():
    policy = '''apiVersion: broomwagon.io/v1
kind: RemediationPolicy
metadata: {name: x}
mode: enforced
rules:
  - name: a
    match: {kind: slow, scope: rank, rnak: 3}
    plan: nothing
  - name: b
    match: {kind: slowly}
    for: soon
    plan: record
  - name: rest
    match: {}
    plan: record
plans:
  record: []
'''
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        file.write(policy)
        file.flush()
        done = subprocess.run([BROOM, 'policy', 'lint', file.name], capture_output=True, text=True)
    errors = [line for line in done.stdout.splitlines() if ': error: ' in line]
    assert done.returncode == 3 and len(errors) == 5, done.stdout + done.stderr
    assert all(line.startswith(file.name + ':') and line.split(':')[1].isdigit() for line in errors), errors


def database_is_up(daemon):
    try:
        daemon.psql('SELECT 1')
        return daemon.get('/api/v1/status')['database']['up']
    except subprocess.CalledProcessError:
        return False


def test_postgres_killed_under_load_loses_nothing_and_doubles_nothing():
    before = int(daemon.psql("SELECT count(*) FROM broom.event WHERE kind = 'ecc'"))
    sent, over = [0], threading.Event()

    def load():
        while not over.is_set():
            line = f'event,host=n0,gpu=0 kind="ecc",code={sent[0]}i {now_ns()}\n'
            code, _ = daemon.write(line)
            assert code == 204, code
            sent[0] += 1
            time.sleep(0.01)

    sender = threading.Thread(target=load)
    sender.start()
    try:
        for _ in range(3):
            time.sleep(1.5)
            os.kill(daemon.postgres_pid(), signal.SIGKILL)
            time.sleep(2)
            wait_for('the database is back', lambda: database_is_up(daemon), 60)
    finally:
        over.set()
        sender.join()
    wait_for('the spool is drained', lambda: daemon.get('/api/v1/status')['database']['spooled'] == 0, 60)
    wait_for('all events are there', lambda: int(daemon.psql("SELECT count(*) FROM broom.event WHERE kind = 'ecc'")) - before
             >= sent[0], 30)
    count, distinct = (int(value) for value in daemon.psql(
        "SELECT count(*), count(DISTINCT record->>'code') FROM broom.event WHERE kind = 'ecc'").split('|'))
    print(f'{sent[0]} events sent while the server was killed three times; {count} stored')
    assert count - before == sent[0] and distinct == sent[0], (before, sent[0], count, distinct)


with Daemon() as daemon:
    assert put(daemon, JOB)[0] == 201
    run([test_bad_lines_cost_only_themselves, test_half_a_gzip_body_and_a_bomb_are_refused,
         test_a_line_of_ten_megabytes_costs_only_itself, test_not_a_number_and_huge_values_hurt_nobody,
         test_a_clock_an_hour_off_moves_nobody_else, test_a_host_that_is_not_the_rank_s_is_refused,
         test_two_live_jobs_of_one_name_are_refused, test_a_node_in_no_rack_is_named, test_an_unknown_job_says_what_to_do,
         test_an_unknown_option_names_the_near_one, test_a_policy_with_five_mistakes_gives_five_messages,
         test_postgres_killed_under_load_loses_nothing_and_doubles_nothing])
