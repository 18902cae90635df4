"""One job, one broomd that looks after it, on a cluster that outlives both: what every scenario starts from and leaves behind."""
import json
import os
import shutil
import tempfile
import time

from daemon import Daemon, wait_for

from . import nodes
from .training import Training

WARM_STEPS = 30     # warm-up and scale of the detectors, and some pace to come back to
KINDS = {'batch.volcano.sh/v1alpha1': 'volcano', 'jobset.x-k8s.io/v1alpha2': 'jobset', 'batch/v1': 'job'}
ENDS = ('done', 'cancelled', 'escalated')

POLICY = """apiVersion: broomwagon.io/v1
kind: RemediationPolicy
metadata: {{name: bench, owner: tests@example.com}}
mode: {mode}
settle: {{corroborated: 1s, uncorroborated: 2s}}
timers: {{approval: 1h, hold: 1h, repair: 1h, validate: 2s, restart_cost: 1s}}
budgets:
  - {{name: racks, scope: cluster, racks: 4, window: 1h}}
  - {{name: trays, scope: cluster, trays: 40, percent: 100, window: 1h}}
rules:
  - {{name: rack-down, match: {{kind: [crash, fault], scope: rack}}, severity: P0, plan: replace-rack}}
  - {{name: tray-down, match: {{kind: [crash, fault, hang], scope: [rank, tray], evict: true}}, severity: P1, plan: replace-tray}}
  - {{name: everything-else, match: {{}}, plan: record}}
plans:
  record: []
  replace-tray:
    - notify: {{severity: critical}}
    - cordon: {{target: trays}}{drain}
    - choose_spare: {{prefer: [same_nvlink_domain, spare_rack], on_none: hold}}
    - restart_job: {{timeout: 3m, on_timeout: escalate{restart}}}
    - verify: {{new_steps: 10, pace_within: 1.5, timeout: 2m, on_timeout: escalate}}{hand_over}
  replace-rack:
    - notify: {{severity: critical}}
    - cordon: {{target: rack}}
    - choose_spare: {{prefer: [spare_rack], on_none: hold}}
    - restart_job: {{timeout: 3m, on_timeout: escalate{restart}}}
    - verify: {{new_steps: 10, pace_within: 1.5, timeout: 2m, on_timeout: escalate}}
"""


def never(what, condition, for_s):
    """Holds when condition() stays false for so long: for things that must not happen."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        assert not condition(), what
        time.sleep(0.2)


class Scene:
    """document: the job. mode: broomd's own and the policy's. restart: further keys of the plans' restart_job, as text.
    drain: trays are drained of other people's pods before the restart. hand_over: keys of that step, as text. credentials: of broomd, see Cluster.product_kubeconfig."""

    def __init__(self, cluster, document, mode='enforce', restart='', drain=False, hand_over='', credentials='token', options=()):
        self.cluster, self.document, self.mode = cluster, document, mode
        self.name = document['metadata']['name']
        self.restart, self.drain, self.hand_over = restart, drain, hand_over
        self.credentials, self.options = credentials, options
        self.pods = self.count_pods()
        self.daemon = self.training = None
        self.folder = tempfile.mkdtemp(prefix='broom-scene-')

    def count_pods(self):
        spec = self.document['spec']
        if 'tasks' in spec:
            return sum(task['replicas'] for task in spec['tasks'])
        if 'replicatedJobs' in spec:
            return sum(job['replicas'] * job['template']['spec']['parallelism'] for job in spec['replicatedJobs'])
        return spec['parallelism']

    # ---- life

    def __enter__(self):
        try:
            self.submitted = self.cluster.submit(self.document)
            self.first_uids = self.cluster.wait_running(self.name, self.pods, 90)
            self.first_racks = self.cluster.racks_of(self.name)
            self.mark = self.cluster.audit.mark()
            self.start_broomd()
            self.training = Training(self.cluster, self.daemon.port, self.name, self.pods)
            kind, uid = KINDS[self.document['apiVersion']], self.submitted['metadata']['uid']
            self.put(self.training.document(kind, uid))
            self.training.start()
            wait_for('the job has warmed up', lambda: self.training.steps_made >= WARM_STEPS, 60)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def start_broomd(self):
        policy = os.path.join(self.folder, 'policy.yaml')
        with open(policy, 'w', encoding='utf-8') as file:
            file.write(POLICY.format(mode=self.mode, restart=self.restart and ', ' + self.restart,
                                     hand_over=self.hand_over and f'\n    - hand_over: {{{self.hand_over}}}',
                                     drain='\n    - drain: {timeout: 12s, on_timeout: continue}' if self.drain else ''))
        self.daemon = Daemon('--mode', self.mode, '--set', 'actuator.kind=kubernetes', '--set',
                             'actuator.kubeconfig=' + self.cluster.product_kubeconfig(self.credentials),
                             '--set', 'actuator.describe_every=1s', *self.options, policy=policy)

    def put(self, document):
        code, text = self.daemon.request('PUT', '/api/v1/jobs/' + document['job'].replace('/', '%2F'), json.dumps(document))
        assert code in (200, 201, 204), (code, text)

    def __exit__(self, kind, *_):
        if kind is not None and self.daemon is not None:
            self.tell()
        if self.training is not None and self.training.is_alive():
            self.training.over.set()
            self.training.join()
        if self.daemon is not None:
            self.daemon.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.cluster.heal()         # first: pods on a dead node would never go
        self.cluster.remove(self.document)
        if kind is None:
            assert self.training.failure is None, self.training.failure

    def tell(self):
        """What a person would look at after a scenario that failed."""
        if self.daemon.process.poll() is None:
            for incident in self.incidents()[-2:]:
                print(self.daemon.broom('incidents', 'show', incident['ref'])[1][-3500:])
        print('---- broomd said', self.daemon.log()[-6000:], sep='\n', flush=True)
        print('---- its writes:', dict(self.cluster.audit.write_counts(self.cluster.product, self.mark, False)), flush=True)

    # ---- questions

    def incidents(self):
        return self.daemon.incidents()

    def incident(self):
        """The only incident there is."""
        found = self.incidents()
        assert len(found) == 1, [(each['ref'], each['domain'], each['phase']) for each in found]
        return found[0]

    def wait_incident(self, what, condition, timeout_s=60):
        """Waits for the only incident to be as condition says; returns it. One that has ended otherwise is not waited for."""
        def look():
            found = self.incidents()
            if len(found) == 1 and condition(found[0]):
                return found[0]
            assert not found or any(each['phase'] not in ENDS for each in found), 'it ended'
            return None
        try:
            return wait_for(what, look, timeout_s)
        except AssertionError as error:
            found = [(each['ref'], each['domain'], each['status'], each['phase'], each['waiting_for']) for each in self.incidents()]
            raise AssertionError(f'{error}: {what}; incidents: {found}') from error

    def wait_phase(self, *phases, timeout_s=60):
        return self.wait_incident(f'an incident is {" or ".join(phases)}', lambda it: it['phase'] in phases, timeout_s)

    def wait_mitigated(self, timeout_s=90):
        """The plan of these policies ends there, and the incident is closed with it."""
        return self.wait_incident('the job makes new steps at its old pace', lambda it: (
            it['status'] in ('mitigated', 'resolved', 'closed') and it['phase'] not in ('cancelled', 'escalated')), timeout_s)

    def show(self):
        """What a person reads of the only incident."""
        return ' '.join(self.daemon.broom('incidents', 'show', self.incident()['ref'], check=0)[1].split())

    def timeline(self):
        return ' '.join(self.daemon.broom('incidents', 'timeline', self.incident()['ref'], check=0)[1].split())

    def writes(self):
        """(verb, resource) -> how many writes of broomd the API server took since the scene began."""
        return self.cluster.audit.write_counts(self.cluster.product, self.mark)

    def used(self):
        """Trays that the job runs on."""
        return set(self.cluster.placement(self.name).values())
