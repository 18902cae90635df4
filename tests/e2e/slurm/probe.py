"""The Slurm actuator without a daemon round it: slurm_probe.c, spoken to over its pipes."""
import json
import os
import subprocess

from daemon import BROOMD

PROBE = os.path.join(os.path.dirname(BROOMD), 'slurm_probe')


class Probe:
    def __init__(self, cluster, token_file='', rest_url='', cluster_name=''):
        self.cluster = cluster
        self.process = subprocess.Popen([PROBE, cluster.conf, token_file, rest_url, cluster_name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def send(self, **request):
        self.process.stdin.write(json.dumps(self.with_job(request)) + '\n')
        self.process.stdin.flush()

    def ask(self, **request):
        self.send(**request)
        return self.receive()

    def receive(self):
        line = self.process.stdout.readline()
        assert line, 'the probe ended: ' + self.process.stderr.read()
        return json.loads(line)

    def start(self, verb, nodes=(), **more):
        return self.ask(call='start', verb=verb, nodes=list(nodes), **more)

    def poll(self, verb, nodes=(), **more):
        return self.ask(call='poll', verb=verb, nodes=list(nodes), **more)

    def with_job(self, more):
        if 'job_id' in more:
            more['workload'] = {'kind': 'slurm', 'cluster': 'lab', 'job_id': more.pop('job_id'), **more.pop('workload', {})}
        return more

    def describe(self, job_id=None, world_size=0, **more):
        jobs = [] if job_id is None else [{'job': 'train', 'world_size': world_size,
                                           'workload': {'kind': 'slurm', 'cluster': 'lab', 'job_id': job_id}}]
        return self.ask(call='describe', jobs=jobs, **more)

    def nodes(self):
        world = self.describe()
        assert world['known'], world['reason']
        return world['nodes']

    def close(self):
        """What it logged."""
        if self.process.stdin.closed:
            return ''
        self.process.stdin.close()
        log = self.process.stderr.read()
        self.process.stdout.close()
        assert self.process.wait(timeout=20) == 0, log
        return log

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self.process.kill()
            print('---- the probe said', self.process.stderr.read()[-2000:], sep='\n')
            self.process.wait()
