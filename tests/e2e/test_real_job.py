#!/usr/bin/env python3
"""A real synchronous job of eight processes (and, where Debian's python3-torch is installed, of eight DDP ranks) streams its own measurements to a real broomd. While it is well nothing is opened;
one rank is slowed for real (it burns CPU, then it is stopped and continued from outside); broomd must name it, open an incident
and clear it once it is well again."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from daemon import Daemon, free_port, run, wait_for

WORLD, STEP_MS, SLOW = 8, 60, 5
HERE = os.path.dirname(os.path.abspath(__file__))
PLAIN = (sys.executable, os.path.join(HERE, 'job_worker.py'))
TORCH = ('/usr/bin/python3', os.path.join(HERE, 'job_worker_torch.py'))


class Job:
    def __init__(self, daemon, worker, steps):
        self.folder = tempfile.mkdtemp(prefix='broom-job-')
        self.burn_file = os.path.join(self.folder, 'burn')
        port = free_port()
        environment = dict(os.environ, BROOM_URL=f'http://127.0.0.1:{daemon.port}', PYTHONDONTWRITEBYTECODE='1')
        self.processes = [
            subprocess.Popen([*worker, str(rank), str(WORLD), str(port), str(steps), str(STEP_MS),
                              self.burn_file if rank == SLOW else self.burn_file + '.never'],
                             env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for rank in range(WORLD)]

    def burn(self, on):
        if on:
            open(self.burn_file, 'w').close()
        else:
            os.unlink(self.burn_file)

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Pulses(threading.Thread):
    """Stops and continues one process: 45 ms in every 90."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.over = process, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.045):
            self.process.send_signal(signal.SIGSTOP)
            self.over.wait(0.045)
            self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.over.set()
        self.join()


def step_of(daemon):
    jobs = daemon.get('/api/v1/jobs')['jobs']
    return jobs[0]['step'] or 0 if jobs else 0


def wait_steps(daemon, count):
    target = step_of(daemon) + count
    wait_for(f'the job makes {count} steps', lambda: step_of(daemon) >= target, 120)


def open_slow(daemon):
    return [i for i in daemon.incidents() if i['kind'] == 'slow' and i['status'] == 'open'
            and i['phase'] not in ('done', 'cancelled')]


def names_the_slow_one(incident):
    return incident['ranks'] == [SLOW] or incident['nodes'] == [f'node-{SLOW // 2}']


def slow_down_and_mend(worker):
    with Daemon() as daemon:
        job = Job(daemon, worker, 100000)
        try:
            wait_for('the job is known', lambda: step_of(daemon) > 0, 60)
            wait_steps(daemon, 150)
            assert not [i for i in daemon.incidents() if i['kind'] == 'slow'], 'a healthy job was accused'
            for how in ('burning CPU', 'stopped and continued'):
                pulses = None
                if how == 'burning CPU':
                    job.burn(True)
                else:
                    pulses = Pulses(job.processes[SLOW])
                found = wait_for(f'an incident while rank {SLOW} is {how}', lambda: open_slow(daemon), 90)
                assert len(found) == 1 and names_the_slow_one(found[0]), found
                print(f'{how}: {found[0]["ref"]} {found[0]["scope"]} {found[0]["domain"]}, cause {found[0]["cause"]}')
                if pulses is None:
                    job.burn(False)
                else:
                    pulses.end()
                wait_for(f'the incident ends once rank {SLOW} is well', lambda: not open_slow(daemon), 90)
                wait_steps(daemon, 60)
            assert not [i for i in daemon.incidents() if not names_the_slow_one(i)], 'somebody else was accused'
        finally:
            job.close()


def test_a_slow_rank_of_a_real_job_is_named_and_cleared():
    slow_down_and_mend(PLAIN)


def test_a_slow_rank_of_a_real_ddp_job_is_named_and_cleared():
    slow_down_and_mend(TORCH)


def has_torch():
    return os.path.exists(TORCH[0]) and subprocess.run([TORCH[0], '-c', 'import torch.distributed'], check=False,
                                                       stderr=subprocess.DEVNULL).returncode == 0


TESTS = [test_a_slow_rank_of_a_real_job_is_named_and_cleared]
if has_torch():
    TESTS.append(test_a_slow_rank_of_a_real_ddp_job_is_named_and_cleared)
else:
    print('without python3-torch: no DDP job')
run(TESTS)
