#!/usr/bin/env python3
"""A real broomd, a real Slurm 22.05 of 36 slurmd in two racks, a real job of eight processes on four nodes: a tray becomes slow, or reports a
fatal Xid; broomd drains it, requeues the job onto a spare of the rack, sees new steps at the old pace. slurmctld stopped meanwhile;
broomd killed around the requeue. Two lanes, each with a cluster of its own, since most of the time is Slurm's own waiting."""
import os
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, 'slurm'))
from daemon import Daemon, free_port, wait_for
from slurm import Cluster, need_slurm

need_slurm()
WORKER, POLICY = os.path.join(HERE, 'slurm/slurm_worker.py'), os.path.join(HERE, 'slurm/policy.yaml')
STEP_MS, SPARES = 60, ('r1n17', 'r1n18')


class Site:
    """A daemon and a job on a cluster that is clean."""

    def __init__(self, cluster, *options, nodes=4, tasks=2):
        self.cluster = cluster
        self.folder = cluster.path('jobs', f'run-{time.monotonic_ns()}')
        os.mkdir(self.folder)
        self.name = f'train-{time.monotonic_ns() % 1000000}'
        self.daemon = Daemon('--set', 'mode=enforce', '--set', 'actuator.kind=slurm', '--set', f'actuator.slurm_conf={self.cluster.conf}',
                             '--set', 'actuator.slurm_cluster=lab', '--set', 'actuator.describe_every=2s', *options, policy=POLICY)
        script = (f'#!/bin/bash\nexport BROOM_URL=http://127.0.0.1:{self.daemon.port} BROOM_JOB={self.name} PYTHONDONTWRITEBYTECODE=1\n'
                  f'srun --kill-on-bad-exit=1 {sys.executable} {WORKER} {self.folder} {free_port()} {STEP_MS}\n')
        self.job_id = self.cluster.submit(script, f'--nodes={nodes}', f'--ntasks-per-node={tasks}', '--gpus-per-node=4', '--open-mode=append')
        self.cluster.wait_job(self.job_id, 'RUNNING')
        self.before = self.nodes()
        wait_for('the job is known', lambda: self.steps() > 0, 60)

    def nodes(self):
        return self.cluster.expand(self.cluster.job(self.job_id)['NodeList'])

    def steps(self):
        jobs = [job for job in self.daemon.get('/api/v1/jobs')['jobs'] if job['job'] == self.name]
        return jobs[0]['step'] or 0 if jobs else 0

    def wait_steps(self, count, timeout_s=60):
        target = self.steps() + count
        wait_for(f'the job makes {count} steps', lambda: self.steps() >= target, timeout_s)

    def fault(self, *nodes):
        """A fatal Xid of trays: what node agents report."""
        lines = [f'event,job={self.name},host={node} kind="xid",code=79i,gpu=1i {time.time_ns()}\n' for node in nodes]
        code, text = self.daemon.write(''.join(lines))
        assert code in (200, 204), (code, text)

    def incidents(self):
        return [i for i in self.daemon.incidents() if i['kind'] in ('slow', 'fault', 'crash')]

    def show(self, ref):
        return self.daemon.broom('incidents', 'timeline', ref)[1]

    def wait_mitigated(self, timeout_s=120):
        """The one incident, once new steps at the old pace have ended it."""
        def mitigated():
            return [i for i in self.incidents() if i['status'] in ('mitigated', 'closed')]
        try:
            incident = wait_for('an incident is mitigated', mitigated, timeout_s)[0]
        except AssertionError:
            for incident in self.daemon.incidents():
                print(self.show(incident['ref']))
            raise
        assert 'Status is now mitigated' in self.show(incident['ref']), self.show(incident['ref'])
        return incident

    def check_replaced(self, incident, bad):
        """The bad tray alone is drained by this incident, a spare of its rack took its place, by one requeue."""
        job = self.cluster.wait_job(self.job_id, 'RUNNING')
        after = self.cluster.expand(job['NodeList'])
        assert set(after) - set(self.before) <= set(SPARES) and set(self.before) - set(after) == {bad}, (self.before, after)
        assert self.cluster.reason(bad).startswith(f'broom:{incident["ref"]} '), self.cluster.reason(bad)
        assert job['Restarts'] == '1' and self.cluster.count_log(rf'Requeuing JobId={self.job_id}\b') == 1, job
        drained = self.cluster.run('sinfo', '-h', '-N', '-t', 'drain', '-o', '%N').split()
        assert set(drained) == {bad}, drained

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print('---- broomd said', self.daemon.log()[-3000:], sep='\n')
        self.cluster.try_run('scancel', self.job_id)
        self.daemon.close()


def test_a_slow_tray_is_drained_and_the_job_goes_on_elsewhere_from_its_checkpoint(cluster):
    with Site(cluster) as site:
        site.wait_steps(150)
        assert not site.incidents(), site.incidents()
        began, bad = time.monotonic(), site.before[2]
        open(os.path.join(site.folder, 'slow-' + bad), 'w').close()
        incident = site.wait_mitigated()
        assert incident['nodes'] == [bad], incident
        site.check_replaced(incident, bad)
        assert 'signalled, and saved' in site.show(incident['ref'])
        print(f'slow for real -> drained, saved, requeued, verified: {time.monotonic() - began:.1f} s')


def test_an_operators_drain_in_the_way_is_kept_and_the_job_moves_all_the_same(cluster):
    with Site(cluster) as site:
        bad = site.before[1]
        cluster.run('scontrol', 'update', f'NodeName={bad}', 'State=DRAIN', 'Reason=fan swap, JIRA-12')
        cluster.run('scontrol', 'update', 'NodeName=r1n18', 'State=DRAIN', 'Reason=not this spare')
        reasons = [cluster.reason(bad), cluster.reason('r1n18')]
        site.fault(bad)
        site.wait_mitigated()
        assert bad not in site.nodes() and 'r1n17' in site.nodes()
        assert [cluster.reason(bad), cluster.reason('r1n18')] == reasons


def test_a_slurmctld_that_stands_still_stops_no_loop_and_nothing_is_believed_of_it(cluster):
    with Site(cluster) as site:
        bad = site.before[3]
        cluster.slurmctld.send_signal(signal.SIGSTOP)
        try:
            site.fault(bad)
            slowest, end = 0.0, time.monotonic() + 14          # one call's limit and more
            while time.monotonic() < end:
                began = time.monotonic()
                site.daemon.get('/api/v1/jobs')
                slowest = max(slowest, time.monotonic() - began)
                time.sleep(0.1)
            assert slowest < 1.0, f'broomd answered after {slowest:.1f} s'
            incident = site.incidents()[0]
            assert incident['status'] == 'open' and incident['phase'] in ('confirmed', 'cordoning', 'holding'), incident
        finally:
            cluster.slurmctld.send_signal(signal.SIGCONT)
        site.check_replaced(site.wait_mitigated(), bad)
        print(f'slowest answer of broomd while slurmctld stood still: {slowest * 1000:.0f} ms')


def test_a_rack_that_fails_is_drained_whole_and_the_job_goes_on_in_the_spare_rack(cluster):
    with Site(cluster, nodes=16, tasks=1) as site:
        assert {node[:2] for node in site.before} == {'r1'}, site.before
        began = time.monotonic()
        site.fault(*site.before[:10])
        incident = site.wait_mitigated()
        assert incident['scope'] == 'rack', incident
        took_s = time.monotonic() - began
        job = cluster.wait_job(site.job_id, 'RUNNING')
        after = cluster.expand(job['NodeList'])
        assert len(after) == 16 and {node[:2] for node in after} == {'r2'} and job['Restarts'] == '1', job
        drained = set(cluster.run('sinfo', '-h', '-N', '-t', 'drain', '-o', '%N').split())
        assert drained == {f'r1n{n:02}' for n in range(1, 19)}, drained
        print(f'rack fault -> 18 trays drained, 16 moved, verified: {took_s:.1f} s')


# What the tool was asked, and whether broomd dies before or after Slurm was asked it.
KILLS = (('update NodeName', 'before'), ('update NodeName', 'after'), ('create ReservationName', 'after'), ('requeuehold', 'before'),
         ('requeuehold', 'after'), ('release', 'after'))


def killing_tools(folder):
    """scontrol that kills its parent, broomd, at each of KILLS in turn; each once. scancel as it is."""
    os.makedirs(folder)
    cases = ''
    for i, (what, when) in enumerate(KILLS):
        act = '/usr/bin/scontrol "$@"; ' if when == 'after' else ''
        previous = f'[ -e {folder}/{i - 1} ] && ' if i > 0 else ''
        cases += f'case "$*" in "{what}"*) {previous}mkdir {folder}/{i} 2>/dev/null && {{ {act}kill -9 $PPID; exit 0; }} ;; esac\n'
    with open(f'{folder}/scontrol', 'w', encoding='utf-8') as file:
        file.write(f'#!/bin/sh\n{cases}exec /usr/bin/scontrol "$@"\n')
    os.chmod(f'{folder}/scontrol', 0o755)
    os.symlink('/usr/bin/scancel', f'{folder}/scancel')


def test_broomd_killed_round_each_change_makes_each_change_once(cluster):
    tools = cluster.path('tools')
    killing_tools(tools)
    with Site(cluster, '--set', f'actuator.slurm_tools={tools}') as site:
        bad = site.before[1]
        changes = (rf'update_node: node {bad} reason set to: broom:', r'Created reservation=broom-job')
        before = [cluster.count_log(change) for change in changes]
        site.fault(bad)
        for i, (what, when) in enumerate(KILLS):
            assert site.daemon.process.wait(timeout=60) == -signal.SIGKILL and os.path.exists(f'{tools}/{i}'), (what, when)
            print(f'broomd killed {when} {what}: job {cluster.job(site.job_id)["JobState"]}, {bad} {cluster.state(bad)}', flush=True)
            site.daemon.launch()        # the next kill may come before it is ready
        wait_for('broomd is ready', site.daemon.is_ready, 60)
        site.check_replaced(site.wait_mitigated(), bad)
        assert [cluster.count_log(change) for change in changes] == [count + 1 for count in before], before


LANES = [({'racks': 2}, [test_a_slow_tray_is_drained_and_the_job_goes_on_elsewhere_from_its_checkpoint,
                         test_an_operators_drain_in_the_way_is_kept_and_the_job_moves_all_the_same,
                         test_a_slurmctld_that_stands_still_stops_no_loop_and_nothing_is_believed_of_it]),
         ({'racks': 2, 'spare_racks': 1}, [test_a_rack_that_fails_is_drained_whole_and_the_job_goes_on_in_the_spare_rack,
                                           test_broomd_killed_round_each_change_makes_each_change_once])]


def run_lane(shape, tests, failed):
    chosen = [test for test in tests if not sys.argv[1:] or any(word in test.__name__ for word in sys.argv[1:])]
    if not chosen:
        return
    with Cluster(rest=False, **shape) as cluster:
        for test in chosen:
            began = time.monotonic()
            try:
                cluster.clean()
                test(cluster)
                print(f'passed {test.__name__} ({time.monotonic() - began:.1f} s)', flush=True)
            except Exception as error:  # a test program reports, whatever happened
                failed.append(test.__name__)
                print(f'FAILED {test.__name__}: {type(error).__name__}: {error}', flush=True)


def main():
    failed = []
    lanes = [threading.Thread(target=run_lane, args=(*lane, failed)) for lane in LANES]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    sys.exit(1 if failed else 0)


main()
