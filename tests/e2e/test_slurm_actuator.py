#!/usr/bin/env python3
"""The Slurm actuator against a real Slurm 22.05: 36 slurmd in two racks of 18, the last two trays of each rack spares. Each verb, what it
leaves alone, what it says when Slurm is down, and that a requeue happens once."""
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'slurm'))
from daemon import run, wait_for
from probe import Probe
from slurm import Cluster, need_slurm

BATCH = '#!/bin/bash\nsrun --kill-on-bad-exit=1 sleep 1000\n'
FOUR = ('--nodes=4', '--ntasks-per-node=4', '--gpus-per-node=4')
need_slurm()
CLUSTER = None


def say(answer, outcome, *words):
    assert answer['outcome'] == outcome and all(word in answer['reason'] for word in words), answer


def batch(*options, script=BATCH):
    job_id = CLUSTER.submit(script, *(options or FOUR))
    CLUSTER.wait_job(job_id, 'RUNNING')
    return job_id


# --- nodes ---

def test_nodes_are_told_with_rack_gpus_and_spares():
    with Probe(CLUSTER) as probe:
        nodes = probe.nodes()
        assert sorted(nodes) == sorted(CLUSTER.nodes)
        assert nodes['r1n01'] == {'rack': 'rack1', 'ready': True, 'cordoned': False, 'cordoned_by': None, 'spare': False,
                                  'promised_to': None, 'gpus': 4}, nodes['r1n01']
        assert {name for name, node in nodes.items() if node['spare']} == {'r1n17', 'r1n18', 'r2n17', 'r2n18'}
        assert {node['rack'] for name, node in nodes.items() if name.startswith('r2')} == {'rack2'}


def test_a_drain_carries_the_incident_and_is_taken_off_again():
    with Probe(CLUSTER) as probe:
        rack = [f'r1n{n:02}' for n in range(1, 19)]
        say(probe.poll('cordon', rack, incident='INC-1'), 'unknown')
        say(probe.start('cordon', rack, incident='INC-1', reason='broom:INC-1 rack fault: cordon'), 'succeeded', '18 of 18')
        assert CLUSTER.state('r1n07') == 'IDLE+DRAIN'
        assert CLUSTER.reason('r1n07').startswith('broom:INC-1 rack fault: cordon [root@')
        assert probe.nodes()['r1n07']['cordoned_by'] == 'INC-1'
        assert probe.poll('cordon', rack, incident='INC-1')['poll'] == 'done'
        say(probe.start('cordon', rack[:2], incident='INC-1'), 'succeeded')     # again: nothing to do
        say(probe.start('uncordon', rack[:1], incident='INC-12'), 'superseded', 'kept r1n01')     # INC-12 is not INC-1
        assert CLUSTER.state('r1n01') == 'IDLE+DRAIN'
        say(probe.start('uncordon', rack, incident='INC-1'), 'succeeded')
        assert 'DRAIN' not in CLUSTER.state('r1n07') and CLUSTER.reason('r1n07') == ''
        assert probe.poll('uncordon', rack, incident='INC-1')['poll'] == 'done'


def test_an_operators_drain_and_reason_are_kept_whatever_we_do():
    CLUSTER.run('scontrol', 'update', 'NodeName=r1n03', 'State=DRAIN', 'Reason=fan swap, JIRA-12')
    before = CLUSTER.reason('r1n03')
    with Probe(CLUSTER) as probe:
        assert probe.nodes()['r1n03']['cordoned_by'] == 'fan swap, JIRA-12'
        say(probe.start('cordon', ['r1n03'], incident='INC-2'), 'superseded', "kept r1n03: 'fan swap, JIRA-12'")
        say(probe.start('cordon', ['r1n03', 'r1n04'], incident='INC-2'), 'succeeded', '1 of 2', "kept r1n03: 'fan swap")
        # The operator takes the other one over while our incident is open.
        CLUSTER.run('scontrol', 'update', 'NodeName=r1n04', 'State=DRAIN', 'Reason=taken over by ops')
        say(probe.start('uncordon', ['r1n03', 'r1n04'], incident='INC-2'), 'superseded', 'r1n03', 'r1n04')
    assert CLUSTER.reason('r1n03') == before and CLUSTER.reason('r1n04').startswith('taken over by ops')
    assert 'DRAIN' in CLUSTER.state('r1n03') and 'DRAIN' in CLUSTER.state('r1n04')


def test_a_person_who_set_a_node_down_keeps_it():
    CLUSTER.run('scontrol', 'update', 'NodeName=r1n05', 'State=DOWN', 'Reason=bad riser')
    with Probe(CLUSTER) as probe:
        node = probe.nodes()['r1n05']
        assert not node['ready'] and node['cordoned'] and node['cordoned_by'] == 'bad riser'
        say(probe.start('cordon', ['r1n05'], incident='INC-2'), 'superseded', 'bad riser')
    assert CLUSTER.state('r1n05').startswith('DOWN') and CLUSTER.reason('r1n05').startswith('bad riser')


def test_names_that_are_no_nodes_reach_no_command():
    with Probe(CLUSTER) as probe:
        for name in ('ALL', 'r1n[01-18]', 'r9n01', '-a', 'r1n01,r1n02'):
            say(probe.start('cordon', [name], incident='INC-2'), 'refused', f"no node '{name}'")
        assert not any(node['cordoned'] for node in probe.nodes().values())


def test_verbs_that_slurm_cannot_do_say_so():
    with Probe(CLUSTER) as probe:
        for verb in ('fence', 'hand_over', 'force_delete'):
            say(probe.start(verb, ['r1n01']), 'refused', 'Slurm')
        say(probe.start('drain', ['r1n01']), 'refused', 'not drained')
        probe.start('cordon', ['r1n01'])
        say(probe.start('drain', ['r1n01']), 'succeeded', 'idle')


# --- jobs ---

def test_a_job_is_told_with_phase_and_ranks():
    job_id = batch()
    nodes = CLUSTER.expand(CLUSTER.job(job_id)['NodeList'])
    with Probe(CLUSTER) as probe:
        job = probe.describe(job_id, 16)['jobs']['train']
        assert job['phase'] == 'running' and job['restarts'] == 0 and job['restart_refusal'] is None, job
        assert job['rank_nodes'] == [node for node in nodes for _ in range(4)]
        assert job['uid'].startswith(f'lab/{job_id}@')
        gone = probe.describe('999')['jobs']['train']
        assert gone['phase'] == 'unknown' and 'no job 999' in gone['restart_refusal'], gone


def test_a_job_is_requeued_onto_named_spares_of_its_rack_and_nobody_takes_them():
    job_id = batch()
    before = CLUSTER.expand(CLUSTER.job(job_id)['NodeList'])
    bad, spare = before[1], 'r1n17'
    wanted = [node if node != bad else spare for node in before]
    op = {'operation': 'INC-3/1/4/1', 'incident': 'INC-3', 'job_id': job_id, 'spares': [spare]}
    with Probe(CLUSTER) as probe:
        say(probe.start('cordon', [bad], incident='INC-3'), 'succeeded')
        assert probe.poll('promise_spare', [bad], **op)['poll'] == 'absent'
        say(probe.start('promise_spare', [bad], **op), 'succeeded', f'broom-job-{job_id}')
        assert probe.poll('promise_spare', [bad], **op)['poll'] == 'done'
        assert probe.describe(job_id)['nodes'][spare]['promised_to'] == 'train'
        # Somebody who wants every free node waits at the door.
        CLUSTER.submit('#!/bin/bash\nsleep 300\n', '--nodes=1', '--gpus-per-node=4', '--array=1-60', '--exclusive')
        assert probe.poll('restart_job', [bad], **op)['poll'] == 'absent'
        began = time.monotonic()
        say(probe.start('restart_job', [bad], **op), 'succeeded', 'requeued', ',17]', 'away from ' + bad)
        took_ms = (time.monotonic() - began) * 1000
        assert probe.poll('restart_job', [bad], **op)['poll'] == 'done'
        assert probe.describe(job_id)['jobs']['train']['phase'] == 'restarting'
        CLUSTER.wait_job(job_id, 'RUNNING')
        after = probe.describe(job_id, 16)['jobs']['train']
        assert sorted(set(after['rank_nodes'])) == sorted(wanted) and after['restarts'] == 1, after
        print(f'requeue, lists and release took {took_ms:.0f} ms; running again {time.monotonic() - began:.1f} s after')
        # The same operation again does nothing.
        say(probe.start('restart_job', [bad], **op), 'succeeded', 'already')
        assert CLUSTER.job(job_id)['Restarts'] == '1'
        say(probe.start('release_spare', **op), 'superseded', 'runs on them')


def test_a_whole_segment_moves_to_a_spare_rack():
    job_id = batch('--nodes=16', '--ntasks-per-node=4', '--gpus-per-node=4', '--switches=1')
    before = CLUSTER.expand(CLUSTER.job(job_id)['NodeList'])
    there = 'r2' if before[0].startswith('r1') else 'r1'
    assert len({node[:2] for node in before}) == 1, before
    spares = [f'{there}n{n:02}' for n in range(1, 17)]
    op = {'operation': 'INC-8/1/3/1', 'incident': 'INC-8', 'job_id': job_id, 'spares': spares}
    with Probe(CLUSTER) as probe:
        rack = [f'{before[0][:2]}n{n:02}' for n in range(1, 19)]
        say(probe.start('cordon', rack, incident='INC-8', reason='broom:INC-8 rack fault: cordon the rack'), 'succeeded', '18 of 18')
        say(probe.start('promise_spare', before, **op), 'succeeded')
        say(probe.start('restart_job', before, **op), 'succeeded', f'to run on {there}n[01-16]')
        CLUSTER.wait_job(job_id, 'RUNNING')
        job = probe.describe(job_id, 64)['jobs']['train']
        assert job['rank_nodes'] == [node for node in spares for _ in range(4)], job


def test_spares_that_are_not_needed_go_back():
    job_id = batch()
    op = {'operation': 'INC-3/1/3/1', 'job_id': job_id}
    with Probe(CLUSTER) as probe:
        say(probe.start('promise_spare', spares=['r1n17', 'r1n18'], **op), 'succeeded')
        say(probe.start('release_spare', spares=['r1n17'], **op), 'succeeded')
        assert 'Nodes=r1n18 ' in CLUSTER.run('scontrol', '-o', 'show', 'reservation')
        say(probe.start('release_spare', spares=['r1n18'], **op), 'succeeded')
        assert probe.poll('release_spare', spares=['r1n17', 'r1n18'], **op)['poll'] == 'done'
        assert 'broom-job' not in CLUSTER.run('scontrol', 'show', 'reservation')
        CLUSTER.run('scontrol', 'update', 'NodeName=r1n17', 'State=DRAIN', 'Reason=x')
        say(probe.start('promise_spare', spares=['r1n17'], **op), 'transient', 'drained')


def test_spares_of_the_pool_are_promised_and_those_that_others_reserved_are_not():
    job_id = batch()
    op = {'operation': 'INC-3/1/3/1', 'job_id': job_id}
    reserve = ('StartTime=now', 'Duration=UNLIMITED', 'Flags=IGNORE_JOBS', 'Users=nobody')
    CLUSTER.run('scontrol', 'create', 'reservation', 'ReservationName=broom-spares', 'Nodes=r1n16,r1n18', *reserve)
    CLUSTER.run('scontrol', 'create', 'reservation', 'ReservationName=team-x', 'Nodes=r1n17', *reserve)
    with Probe(CLUSTER) as probe:
        assert {name for name, node in probe.nodes().items() if node['spare']} == {'r1n16', 'r1n18', 'r2n17', 'r2n18'}
        say(probe.start('promise_spare', spares=['r1n17'], **op), 'transient', "reservation 'team-x'")
        say(probe.start('promise_spare', spares=['r1n16'], **op), 'succeeded')
        bad = CLUSTER.expand(CLUSTER.job(job_id)['NodeList'])[0]
        say(probe.start('restart_job', [bad], spares=['r1n16'], **op), 'succeeded')
        assert 'r1n16' in CLUSTER.expand(CLUSTER.wait_job(job_id, 'RUNNING')['NodeList'])


def test_a_restart_without_spares_keeps_away_from_the_bad_node_without_a_drain():
    job_id = batch()
    bad = CLUSTER.expand(CLUSTER.job(job_id)['NodeList'])[0]
    with Probe(CLUSTER) as probe:
        say(probe.start('restart_job', [bad], operation='INC-4/1/4/1', job_id=job_id), 'succeeded', 'away from ' + bad)
    job = CLUSTER.wait_job(job_id, 'RUNNING')
    assert bad not in CLUSTER.expand(job['NodeList']) and job['ExcNodeList'] == bad


def test_a_restart_that_was_cut_off_after_the_requeue_is_gone_on_with_and_requeues_once():
    job_id = batch()
    op = {'operation': 'INC-5/1/4/1', 'job_id': job_id, 'spares': ['r1n18']}
    before = CLUSTER.expand(CLUSTER.job(job_id)['NodeList'])
    # What a broomd that was killed between its requeue and its release leaves behind.
    CLUSTER.run('scontrol', 'update', f'JobId={job_id}', f'AdminComment=seen by ops broom:INC-5/1/4/1 restarts=0 nodes={",".join(before)}')
    CLUSTER.run('scontrol', 'requeuehold', job_id)
    with Probe(CLUSTER) as probe:
        answer = probe.poll('restart_job', [before[0]], **op)
        assert answer['poll'] == 'absent' and 'held' in answer['reason'], answer
        assert 'held until' in probe.describe(job_id)['jobs']['train']['waiting_for']
        say(probe.start('restart_job', [before[0]], **op), 'succeeded')
        job = CLUSTER.wait_job(job_id, 'RUNNING')
        assert job['Restarts'] == '1' and sorted(CLUSTER.expand(job['NodeList'])) == sorted(before[1:] + ['r1n18']), job
    assert 'AdminComment=seen by ops broom:INC-5/1/4/1' in CLUSTER.run('scontrol', 'show', 'job', job_id)


def test_what_slurm_does_not_requeue_is_refused_and_why():
    no_requeue = batch('--no-requeue', *FOUR)
    held = CLUSTER.submit(BATCH, '--hold', *FOUR)
    ended = CLUSTER.submit('#!/bin/bash\ntrue\n', '--nodes=1')
    CLUSTER.wait_job(ended, 'COMPLETED')
    step = CLUSTER.launch('srun', 'srun', '--nodes=1', 'sleep', '100', cwd=CLUSTER.base)
    find = ('squeue', '-h', '-n', 'sleep', '-t', 'R', '-o', '%i')
    interactive = wait_for('the srun job runs', lambda: CLUSTER.run(*find).strip())
    with Probe(CLUSTER) as probe:
        for job_id, words in ((no_requeue, '--no-requeue'), (held, 'held'), (ended, 'has ended (COMPLETED)'), (interactive, 'srun'),
                              ('4242', 'Invalid job id'), ('no-id', 'names no Slurm job_id')):
            say(probe.start('restart_job', ['r1n01'], job_id=job_id), 'refused', words)
        assert 'srun' in probe.describe(interactive)['jobs']['train']['restart_refusal']
    assert CLUSTER.job(no_requeue)['JobState'] == 'RUNNING' and CLUSTER.job(ended)['JobState'] == 'COMPLETED'
    CLUSTER.run('scancel', interactive)
    step.wait()


def test_a_checkpoint_is_a_signal_that_the_job_asked_for():
    saved = CLUSTER.path('jobs', 'saved')
    script = f'#!/bin/bash\ntrap "sleep 1; touch {saved}" USR1\nwhile true; do sleep 0.2; done\n'
    job_id = batch('--nodes=1', script=script)
    time.sleep(0.5)      # until the trap is set
    with Probe(CLUSTER) as probe:
        say(probe.start('request_checkpoint', job_id=job_id), 'refused', 'names no checkpoint_signal')
        more = {'checkpoint_signal': 'USR1', 'checkpoint_file': saved}
        say(probe.start('request_checkpoint', job_id=job_id, workload=more), 'succeeded', 'saved')
    assert os.path.exists(saved) and CLUSTER.job(job_id)['JobState'] == 'RUNNING'


# --- slurmrestd ---

def test_slurmrestd_and_scontrol_tell_the_same_and_one_stands_in_for_the_other():
    job_id = batch()
    CLUSTER.run('scontrol', 'update', 'NodeName=r2n03', 'State=DRAIN', 'Reason=fan swap, JIRA-12')
    CLUSTER.run('scontrol', 'update', 'NodeName=r2n04', 'State=DOWN', 'Reason=bad riser')
    CLUSTER.write('token', CLUSTER.token())
    munge = CLUSTER.path('munge/socket')
    with Probe(CLUSTER) as tools, Probe(CLUSTER, CLUSTER.path('token'), CLUSTER.rest_url) as rest:
        by_rest, by_tool = rest.describe(job_id, 16), tools.describe(job_id, 16)
        different = [(name, by_rest['nodes'].get(name), node) for name, node in by_tool['nodes'].items() if by_rest['nodes'].get(name) != node]
        assert by_rest == by_tool, (by_rest['reason'], different[:3], by_rest['jobs'], by_tool['jobs'])
        say(rest.start('cordon', ['r2n05'], incident='INC-9'), 'succeeded')
        say(rest.start('restart_job', ['r1n02'], operation='INC-9/1/4/1', job_id=job_id), 'succeeded', 'requeued')
        assert 'no job 999' in rest.describe('999')['jobs']['train']['restart_refusal']
        CLUSTER.wait_job(job_id, 'RUNNING')      # the daemons need munge for what they have under way
        # The token does for the tools what munge does.
        os.rename(munge, munge + '.away')
        try:
            away = tools.describe(), rest.describe()
            assert [world['known'] for world in away] == [False, True], [world['reason'] for world in away]
            # slurmrestd is away: that is not Slurm being away.
            CLUSTER.slurmrestd.kill()
            CLUSTER.slurmrestd.wait()
            assert rest.describe(job_id)['known']
            CLUSTER.write('token', 'stale')
            assert not rest.describe()['known']
        finally:
            os.rename(munge + '.away', munge)


# --- slurmctld and slurmd die ---

def test_a_node_whose_slurmd_dies_is_not_ready_and_the_job_that_slurm_requeued_gets_its_new_nodes():
    # Without a step: one that is still being launched on the node would fail the job before Slurm can requeue it.
    job_id = batch(*FOUR, script='#!/bin/bash\nsleep 1000\n')
    bad = CLUSTER.expand(CLUSTER.job(job_id)['NodeList'])[2]
    CLUSTER.kill_slurmd(bad)
    try:
        with Probe(CLUSTER) as probe:
            wait_for(f'{bad} is down', lambda: 'DOWN' in CLUSTER.state(bad), 60)
            node = probe.nodes()[bad]
            assert not node['ready'] and not node['cordoned'], node      # Slurm's own "Not responding" is nobody's cordon
            say(probe.start('cordon', [bad], incident='INC-7', reason='broom:INC-7 tray lost: cordon'), 'succeeded')
            assert CLUSTER.reason(bad).startswith('broom:INC-7 tray lost: cordon; before: Not responding')
            # Slurm has requeued it; that is no second requeue of ours.
            wait_for('Slurm requeued the job', lambda: CLUSTER.job(job_id)['Restarts'] == '1', 30)
            op = {'operation': 'INC-7/1/4/1', 'incident': 'INC-7', 'job_id': job_id, 'spares': ['r1n17']}
            answer = probe.start('restart_job', [bad], **op)
            job = CLUSTER.wait_job(job_id, 'RUNNING', 60)
            if answer['outcome'] == 'succeeded' and 'requeuehold' not in answer['response']:
                assert job['Restarts'] == '1'
            assert bad not in CLUSTER.expand(job['NodeList']), job
            # Back again it stays out of service until a person, or our uncordon, lets it in.
            CLUSTER.start_slurmd(bad)
            wait_for(f'{bad} answers', lambda: CLUSTER.state(bad) in ('IDLE+DRAIN', 'DOWN+DRAIN'), 30)
            say(probe.start('uncordon', [bad], incident='INC-7'), 'succeeded')
    finally:
        if CLUSTER.slurmd[bad].poll() is not None:
            CLUSTER.start_slurmd(bad)


def test_another_cluster_that_answers_is_no_world():
    with Probe(CLUSTER, cluster_name='prod') as probe:
        world = probe.describe()
        assert not world['known'] and "'lab' answers, not 'prod'" in world['reason'], world


def restart_slurmctld():
    time.sleep(max(0.0, CLUSTER.booted + 1.1 - time.monotonic()))     # BOOT_TIME is told in whole seconds
    CLUSTER.start_slurmctld()


def known_world(probe, **more):
    return wait_for('slurmctld has heard of its nodes', lambda: (w := probe.describe(**more))['known'] and w, 30)


def test_an_acknowledged_drain_that_slurmctld_lost_is_made_again_once():
    with Probe(CLUSTER) as probe:
        probe.nodes()
        saved = CLUSTER.path('state-saved')
        shutil.copytree(CLUSTER.path('state'), saved)
        say(probe.start('cordon', ['r2n05', 'r2n06'], incident='INC-6', reason='broom:INC-6 rack: cordon'), 'succeeded')
        time.sleep(0.3)
        CLUSTER.kill_slurmctld()
        probe.send(call='describe', jobs=[])
        probe.send(call='poll', verb='cordon', nodes=['r2n05'], incident='INC-6')
        probe.send(call='start', verb='cordon', nodes=['r2n07'], incident='INC-6')
        answers = [probe.receive() for _ in range(3)]        # each after some 9 s, when scontrol gives up
        down = next(answer for answer in answers if 'known' in answer)
        assert not down['known'] and 'did not answer' in down['reason'] and not down['nodes'], down
        assert sorted(a['outcome'] for a in answers if 'poll' in a) == ['transient', 'unknown'], answers
        assert all(a['poll'] == 'unreachable' for a in answers if 'poll' in a), answers
        # It writes its state when it likes: at 0.3 s mostly not yet. Here it never had.
        shutil.rmtree(CLUSTER.path('state'))
        os.rename(saved, CLUSTER.path('state'))
        restart_slurmctld()
        assert 'DRAIN' not in CLUSTER.state('r2n05')
        paused = known_world(probe, may_act=False)['nodes']['r2n05']      # while the robot is paused nothing is written
        assert paused['cordoned'] and paused['cordoned_by'] == 'INC-6' and 'DRAIN' not in CLUSTER.state('r2n05')
        node = known_world(probe)['nodes']['r2n05']
        assert node['cordoned'] and node['cordoned_by'] == 'INC-6', node
        assert 'DRAIN' in CLUSTER.state('r2n05') and CLUSTER.reason('r2n06').startswith('broom:INC-6 rack: cordon [')
        # A person's resume is not fought.
        CLUSTER.run('scontrol', 'update', 'NodeName=r2n05', 'State=RESUME')
        assert not probe.nodes()['r2n05']['cordoned'] and 'DRAIN' not in CLUSTER.state('r2n05')
        log = probe.close()
        assert log.count('event=slurm_drain_reapplied') == 2, log


TESTS = [test for name, test in list(globals().items()) if name.startswith('test_')]


def main():
    global CLUSTER
    chosen = [test for test in TESTS if not sys.argv[1:] or any(word in test.__name__ for word in sys.argv[1:])]
    with Cluster() as CLUSTER:
        def alone(test):
            def call():
                CLUSTER.clean()
                test()
            call.__name__ = test.__name__
            return call
        run([alone(test) for test in chosen])


main()
