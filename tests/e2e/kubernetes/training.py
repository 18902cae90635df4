"""A synchronous training job as its ranks would report it to broomd, keyed by where its pods really are: four ranks a pod, a
rank speaks only while its pod runs on a node that lives, and no step is made while one rank is missing. Every new set of pods
is a new attempt that goes on from the last checkpoint.

What breaks a job breaks it for good: processes that died with a node, a rack or a collective's error come back with new pods
only, whatever their node does."""
import http.client
import random
import threading
import time

from . import nodes

XID_OFF_THE_BUS, XID_NVLINK_NETIR = 79, 149
CHECKPOINT_EVERY = 40
BEAT_EVERY_S = 2.0
LOOK_EVERY_S = 0.5
HELD_LINES = 20000      # of those that broomd was away for


class Training(threading.Thread):
    def __init__(self, cluster, port, name, pods=16, step_s=0.2, namespace='default', seed=1):
        super().__init__(daemon=True, name='training-' + name)
        self.cluster, self.port, self.name_, self.pods, self.namespace = cluster, port, name, pods, namespace
        self.job = f'{namespace}/{name}'
        self.step_s, self.random = step_s, random.Random(seed)
        self.lock, self.over = threading.RLock(), threading.Event()
        self.placement, self.uids = {}, frozenset()     # of the pods that run: index -> node
        self.broken, self.dead_nodes = frozenset(), set()
        self.step, self.checkpoint, self.attempt, self.steps_made = 0, 0, 0, 0
        self.held, self.failure = [], None

    # ---- what a test does and asks

    def tray_dies(self, node, with_event=True):
        """The processes on the node are gone; the GPUs' monitor of the node had its last word."""
        self.dead_nodes.add(node)
        self.break_now()
        if with_event:
            for gpu in range(nodes.GPUS):
                self.event(node, 'xid', gpu=gpu, code=XID_OFF_THE_BUS)

    def rack_dies(self, rack):
        """The NVLink domain goes: its monitor says so, its trays' GPUs within a second, and all processes of the job end."""
        self.dead_nodes.update(self.cluster.rack_nodes(rack))
        self.break_now()
        self.write([f'event,rack={nodes.rack_name(rack)} kind="nvlink_domain_down" {time.time_ns()}'])
        for node in sorted(set(self.placement.values()) & set(self.cluster.rack_nodes(rack))):
            self.event(node, 'xid', gpu=0, code=XID_NVLINK_NETIR, subcode=4)

    def repaired(self, *repaired):
        self.dead_nodes.difference_update(repaired)

    def event(self, node, kind, gpu=None, **fields):
        tags = f',host={node}' + (f',gpu={gpu}' if gpu is not None else '')
        values = ''.join(f',{key}={value}i' for key, value in fields.items())
        self.write([f'event{tags} kind="{kind}"{values} {time.time_ns()}'])

    def break_now(self):
        with self.lock:
            self.broken = self.uids

    def document(self, kind, uid):
        """The job file: what a restart acts on, and how ranks are laid out."""
        world = self.pods * nodes.GPUS
        return {'job': self.job, 'world_size': world, 'compute_ms': 'kernel',
                'workload': {'kind': kind, 'namespace': self.namespace, 'name': self.name_, 'uid': uid},
                'parallel': {'tp': nodes.GPUS, 'pp': 1, 'dp': self.pods, 'order': 'tp-dp-pp'}}

    def end(self):
        self.over.set()
        self.join()
        assert self.failure is None, f'the simulated job: {self.failure}'

    # ---- the job's life

    def run(self):
        try:
            self.live()
        except Exception as error:      # told to the test by end()
            self.failure = repr(error)

    def live(self):
        next_look = next_beat = 0.0
        while not self.over.is_set():
            now = time.monotonic()
            if now >= next_look:
                self.look()
                next_look = now + LOOK_EVERY_S
            if self.can_step():
                self.make_step()
            elif now >= next_beat:
                self.beat()
                next_beat = now + BEAT_EVERY_S
            self.over.wait(max(0.0, now + self.step_s - time.monotonic()))

    def look(self):
        """Where the pods are. An API server that does not answer changes nothing for a running job."""
        running = self.cluster.running_of(self.name_, self.namespace)
        if running is None:
            return
        with self.lock:
            uids = frozenset(uid for uid, _ in running.values())
            self.placement = {index: node for index, (_, node) in running.items()}
            if uids == self.uids:
                return
            if self.uids - uids:
                self.broken |= uids & self.uids         # those that are left have lost a peer
            self.uids = uids
            if len(uids) == self.pods and not uids & self.broken:
                self.begin_attempt()

    def begin_attempt(self):
        self.attempt += 1
        self.step = self.checkpoint
        now, world = time.time_ns(), self.pods * nodes.GPUS
        self.write([f'hello,job={self.job},rank={rank} host="{node}",gpu={gpu}i,world={world}i,tp={nodes.GPUS}i,pp=1i,'
                    f'dp={self.pods}i,attempt={self.attempt}i,rail={gpu}i {now}' for rank, node, gpu in self.ranks()])

    def ranks(self):
        for index, node in sorted(self.placement.items()):
            for gpu in range(nodes.GPUS):
                yield index * nodes.GPUS + gpu, node, gpu

    def can_step(self):
        with self.lock:
            return (len(self.uids) == self.pods and not self.uids & self.broken
                    and not self.dead_nodes & set(self.placement.values()))

    def make_step(self):
        now, usual = time.time_ns(), self.step_s * 1000
        compute = {rank: usual * 0.7 * self.random.gauss(1, 0.01) for rank, _, _ in self.ranks()}
        slowest = max(compute.values())
        transfer = usual * 0.2 * self.random.gauss(1, 0.01)
        self.step += 1
        self.steps_made += 1
        self.write([f'step,job={self.job},rank={rank} step={self.step}i,step_ms={slowest + transfer:.3f},'
                    f'allreduce_ms={slowest - own + transfer:.3f},compute_ms={own:.3f},sm={self.random.gauss(0.9, 0.01):.4f},'
                    f'mem=0.7 {now + int(self.random.uniform(0, 2e6))}' for rank, own in compute.items()])
        if self.step % CHECKPOINT_EVERY == 0:
            self.checkpoint = self.step
            self.write([f'mark,job={self.job} kind="checkpoint",step={self.step}i,dur_ms=20 {now}'])

    def beat(self):
        """Ranks that wait for a lost one still say so; the dead are silent."""
        if self.attempt == 0:
            return
        now = time.time_ns()
        self.write([f'beat,job={self.job},rank={rank} step={self.step}i,phase="allreduce" {now}'
                    for rank, node, _ in self.ranks() if node not in self.dead_nodes])

    def write(self, lines):
        """Sends them after those that could not be sent; what broomd refuses is the test's own mistake."""
        with self.lock:
            self.held = (self.held + lines)[-HELD_LINES:]
            if self.held and self.post('\n'.join(self.held) + '\n'):
                self.held = []

    def post(self, body):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=10)
        try:
            connection.request('POST', '/write', body)
            answer = connection.getresponse()
            text = answer.read().decode(errors='replace')
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if answer.status == 400:
            self.failure = f'broomd refused lines: {text[:300]}'
        return answer.status in (204, 400)
