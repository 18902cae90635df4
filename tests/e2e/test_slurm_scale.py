#!/usr/bin/env python3
"""The Slurm actuator on 180 real slurmd, ten racks of 18: the world is read, a rack is drained and taken back, a job that spans eight racks is
moved off a tray; how long each takes."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'slurm'))
from daemon import run, wait_for
from probe import Probe
from slurm import Cluster, need_slurm

need_slurm()
# A busy host, not this actuator, is what the limits leave room for.
DESCRIBE_MS, RACK_MS = 2000, 1000


def timed(call, *arguments, **more):
    began = time.monotonic()
    answer = call(*arguments, **more)
    return answer, (time.monotonic() - began) * 1000


def test_ten_racks_are_read_and_a_rack_is_drained_in_one_call():
    began = time.monotonic()
    with Cluster(racks=10, rest=False) as cluster, Probe(cluster) as probe:
        print(f'{len(cluster.nodes)} slurmd idle after {time.monotonic() - began:.1f} s')
        world, took_ms = timed(probe.describe)
        assert world['known'] and len(world['nodes']) == 180, world['reason']
        assert len({node['rack'] for node in world['nodes'].values()}) == 10
        assert sum(node['spare'] for node in world['nodes'].values()) == 20
        assert took_ms < DESCRIBE_MS, f'{took_ms:.0f} ms'
        print(f'described in {took_ms:.0f} ms')
        rack = [name for name in cluster.nodes if name.startswith('r7n')]
        answer, took_ms = timed(probe.start, 'cordon', rack, incident='INC-1', reason='broom:INC-1 rack fault: cordon')
        assert answer['outcome'] == 'succeeded' and answer['response'].count('scontrol update') == 1, answer
        assert took_ms < RACK_MS, f'{took_ms:.0f} ms'
        print(f'18 trays drained, read before and after, in {took_ms:.0f} ms')
        assert {name for name, node in probe.nodes().items() if node['cordoned']} == set(rack)
        assert probe.start('uncordon', rack, incident='INC-1')['outcome'] == 'succeeded'
        move_a_large_job(cluster, probe)


def move_a_large_job(cluster, probe):
    wait_for('all are idle again', lambda: 'idle' in cluster.run('sinfo', '-h', '-N', '-n', 'r7n01', '-o', '%t'))
    job_id = cluster.submit('#!/bin/bash\nsleep 1000\n', '--nodes=128', '--gpus-per-node=4', '--exclusive')
    job = cluster.wait_job(job_id, 'RUNNING')
    before = cluster.expand(job['NodeList'])
    bad, spare = before[40], next(name for name, node in probe.nodes().items() if node['spare'] and node['rack'] == 'rack' + before[40][1])
    op = {'operation': 'INC-2/1/3/1', 'incident': 'INC-2', 'job_id': job_id, 'spares': [spare]}
    assert probe.start('promise_spare', [bad], **op)['outcome'] == 'succeeded'
    answer, took_ms = timed(probe.start, 'restart_job', [bad], **op)
    assert answer['outcome'] == 'succeeded', answer
    after = cluster.expand(cluster.wait_job(job_id, 'RUNNING')['NodeList'])
    assert set(before) - set(after) == {bad} and set(after) - set(before) == {spare}, (bad, spare)
    print(f'a job of 128 trays: requeued, listed and released in {took_ms:.0f} ms')


run([test_ten_racks_are_read_and_a_rack_is_drained_in_one_call])
