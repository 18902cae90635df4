#!/usr/bin/env python3
"""A service of the site in place of a scheduler (actuator.kind webhook): it checks every signature as runbooks/hand-over.md tells it
to, loses an answer, has a bad minute, and is asked for each action once."""
import http.server
import json
import os
import re
import tempfile
import threading
import time
import urllib.parse

from daemon import Daemon, ROOT, run, wait_for

SECRET = b'correct horse battery staple'
NODES = ('gb-1', 'gb-2', 'gb-3')
POLICY = """apiVersion: broomwagon.io/v1
kind: RemediationPolicy
metadata: {name: hand-over, owner: sre@example.com}
mode: enforce
settle: {corroborated: 1s, uncorroborated: 2s}
budgets:
  - {name: trays, scope: cluster, trays: 2, window: 1h}
rules:
  - name: fault
    match: {kind: [crash, fault], evict: true}
    severity: P1
    plan: out
  - {name: rest, match: {}, plan: record}
plans:
  record: []
  out:
    - cordon: {target: trays}
    - hand_over: {to: hardware}
"""


def receiver_s_check():
    """is_from_broomd, as the page for receivers has it."""
    with open(ROOT + '/runbooks/hand-over.md', encoding='utf-8') as file:
        code = re.search(r'```python\n(.*?)```', file.read(), re.S).group(1)
    names = {}
    exec(code, names)       # our own page
    return names['is_from_broomd']


class Service(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(('127.0.0.1', 0), Handler)
        self.check = receiver_s_check()
        self.lock = threading.Lock()
        self.posts, self.polls, self.unsigned = [], [], 0
        self.done = {}              # operation id -> its answer
        self.cordoned = {}          # node -> incident
        self.troubles = 1           # how many hand-overs are answered with 503 first
        self.lose = True            # the first cordon is done and its answer lost
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def world(self):
        return {'nodes': [{'name': node, 'rack': 'rk-1', 'ready': True, 'cordoned': node in self.cordoned,
                           'cordoned_by': self.cordoned.get(node), 'spare': False, 'gpus': 4} for node in NODES],
                'jobs': [{'name': 'default/x', 'uid': 'u', 'phase': 'running', 'restarts': 0, 'restarts_max': 3,
                          'rank_nodes': [NODES[rank // 4] for rank in range(8)]}]}

    def act(self, action):
        """(code, answer); code 0: no answer."""
        self.posts.append(action)
        operation = action['operation_id']
        if action['verb'] == 'hand_over' and self.troubles > 0:
            self.troubles -= 1
            return 503, {'error': 'our database restarts'}
        if operation not in self.done:
            if action['verb'] == 'cordon':
                self.cordoned.update({node: action['incident'] for node in action['nodes']})
            self.done[operation] = {'state': 'done', 'outcome': 'succeeded', 'reason': f'ticket {len(self.done) + 1}'}
        if action['verb'] == 'cordon' and self.lose:
            self.lose = False
            return 0, {}
        return 200, self.done[operation]


class Handler(http.server.BaseHTTPRequestHandler):
    def is_ours(self, body):
        if self.server.check(self.headers, body, SECRET):
            return True
        self.server.unsigned += 1
        self.answer(401, {'error': 'bad signature'})
        return False

    def answer(self, code, document):
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        with self.server.lock:
            if not self.is_ours(body):
                return
            action = json.loads(body)
            assert self.headers['Broom-Operation'] == action['operation_id']
            code, document = self.server.act(action)
        if code == 0:
            self.close_connection = True        # as a service that is killed after it has acted
            return
        self.answer(code, document)

    def do_GET(self):
        with self.server.lock:
            if not self.is_ours(b''):
                return
            if self.path == '/site/world':
                self.answer(200, self.server.world())
                return
            operation = urllib.parse.unquote(self.path[len('/site/'):])
            self.server.polls.append(operation)
            known = self.server.done.get(operation)
            self.answer(200 if known else 404, known or {'error': 'no such operation'})

    def log_message(self, *_):
        pass


def feed(over):
    """Steps of eight ranks on two trays until the first of them loses its GPUs."""
    daemon.write(''.join(f'hello,job=default/x,rank={rank} host="{NODES[rank // 4]}",gpu={rank % 4}i,world=8i,tp=4i,attempt=0i\n'
                         for rank in range(8)))
    step = 0
    while not over.is_set():
        step += 1
        daemon.write(''.join(f'step,job=default/x,rank={rank} step={step}i,step_ms=100,compute_ms=80,allreduce_ms=10 '
                             f'{time.time_ns()}\n' for rank in range(8)))
        time.sleep(0.1)


def test_a_fault_is_handed_over_and_everything_is_signed_and_done_once():
    over = threading.Event()
    sender = threading.Thread(target=feed, args=(over,))
    sender.start()
    wait_for('the job steps', lambda: (daemon.get('/api/v1/jobs')['jobs'] or [{}])[0].get('step') not in (None, 0, 1))
    over.set()
    sender.join()
    daemon.write(''.join(f'event,host=gb-1,gpu={gpu} kind="xid",code=79i {time.time_ns()}\n' for gpu in range(4)))
    incident = wait_for('it is handed over', lambda: next((each for each in daemon.incidents()
                                                           if each['phase'] == 'repairing'), None), 90)
    assert incident['nodes'] == ['gb-1'], incident['nodes']
    wait_for('the ticket is there', lambda: len(service.done) == 2, 30)
    verbs = [action['verb'] for action in service.posts]
    assert verbs == ['cordon', 'cordon', 'hand_over', 'hand_over'], verbs     # each once more after its trouble, under its id
    assert service.unsigned == 0
    assert len(service.done) == 2 and service.cordoned == {'gb-1': incident['ref']}, service.done
    assert len({action['operation_id'] for action in service.posts}) == 2, service.posts
    wait_for('the ticket is in the record',
             lambda: 'ticket 2' in json.dumps(daemon.get(f"/api/v1/incidents/{incident['ref']}")), 20)


def test_a_layout_leaves_out_what_the_incident_takes_out():
    code, _, err = daemon.broom('layout', 'default/x')
    assert code == 7 and 'GPUs missing: 4' in err, (code, err)
    code, out, err = daemon.broom('layout', 'default/x', '--nodes', 'gb-3,gb-2', '-f', 'hostfile')
    assert (code, out) == (0, 'gb-3 slots=4\ngb-2 slots=4\n'), (code, out, err)
    assert daemon.broom('layout', 'default/x', '--incident', 'INC-77')[0] == 4


def test_a_service_with_another_secret_is_told_and_nothing_is_taken_for_done():
    with open(secret, 'wb') as file:
        file.write(b'another secret')
    before = service.unsigned
    wait_for('it asks with the new secret', lambda: service.unsigned > before, 40)
    status = daemon.get('/api/v1/status')
    assert status['actuator'] == 'webhook', status
    with open(secret, 'wb') as file:
        file.write(SECRET + b'\n')


with tempfile.TemporaryDirectory() as folder:
    secret, policy = folder + '/secret', folder + '/policy.yaml'
    for name, content in ((secret, SECRET + b'\n'), (policy, POLICY.encode())):
        with open(name, 'wb') as handle:
            handle.write(content)
    os.chmod(secret, 0o600)
    service = Service()
    with Daemon('--mode', 'enforce', '--set', 'actuator.kind=webhook', '--set', f'webhook.secret={secret}', '--set',
                f'webhook.url=http://127.0.0.1:{service.server_address[1]}/site', '--set', 'actuator.describe_every=1s',
                policy=policy) as daemon:
        run([test_a_fault_is_handed_over_and_everything_is_signed_and_done_once,
             test_a_layout_leaves_out_what_the_incident_takes_out,
             test_a_service_with_another_secret_is_told_and_nothing_is_taken_for_done])
