"""Cluster: one control plane with racks of nodes, used as

    with Cluster(racks=2, spares_per_rack=2) as cluster:
        cluster.submit(volcano_job('train', pods=16))
        cluster.wait_running('train', 16)

Everything runs on 127.0.0.1 with free ports in a folder of its own and is ended by process id. What can be done to it is in
faults.py, what can be asked of it in questions.py."""
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import urllib.request

from daemon import ROOT, free_port, skip, wait_for

from . import components, nodes
from .audit import AuditLog
from .faults import Faults
from .pki import Authority
from .processes import Program, stop_all
from .questions import Questions
from .rest import Rest, must

HERE = os.path.dirname(os.path.abspath(__file__))
PRODUCT = 'system:serviceaccount:broomwagon:broomd'
PORTS = ('api', 'etcd', 'etcd-peer', 'manager', 'scheduler', 'kwok', 'jobset', 'jobset-health')
VOLCANO_KINDS = ('batch.volcano.sh/v1alpha1/jobs', 'bus.volcano.sh/v1alpha1/commands', 'scheduling.volcano.sh/v1beta1/queues',
                 'topology.volcano.sh/v1alpha1/hypernodes')
PERMISSIONS = {'Namespace', 'ServiceAccount', 'Role', 'ClusterRole', 'RoleBinding', 'ClusterRoleBinding',
               'ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'}


def built():
    """The folder with programs; built where it is not there."""
    done = subprocess.run([os.path.join(HERE, 'build')], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        skip('there is no Go compiler')
    assert done.returncode == 0, 'tests/e2e/kubernetes/build failed'
    return done.stdout.strip().splitlines()[-1]


class Cluster(Faults, Questions):
    """racks: how many; the last spare_racks of them are all spare, and the last spares_per_rack trays of each other one.
    node_lease_s, node_grace_s: a dead node is NotReady after about the latter. eviction_after_s: when its pods are deleted.
    heavy: nodes of 30 kB. lifeless: nodes without kubelets (for numbers of nodes that one machine cannot keep alive)."""

    def __init__(self, racks=2, trays=18, spare_racks=0, spares_per_rack=0, node_lease_s=4, node_grace_s=8,
                 eviction_after_s=300, heavy=False, lifeless=False, with_jobset=True, outlives=False):
        self.racks, self.trays, self.spare_racks, self.spares_per_rack = racks, trays, spare_racks, spares_per_rack
        self.node_lease_s, self.node_grace_s, self.eviction_after_s = node_lease_s, node_grace_s, eviction_after_s
        self.heavy, self.lifeless, self.with_jobset, self.outlives = heavy, lifeless, with_jobset, outlives
        self.product = PRODUCT
        self.made = built()
        self.share = self.made + '/share'
        self.folder = tempfile.mkdtemp(prefix='broom-kubernetes-')
        self.ports = {name: free_port() for name in PORTS}
        self.audit = AuditLog(self.folder + '/audit.log')
        self.programs = {}

    def binary(self, name):
        return os.path.join(self.made, 'bin', name)

    # ---- life

    def start(self):
        if not self.outlives:
            # a test whose time is over still ends what it started
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            self.start_control_plane()
            self.install_kinds()
            self.make_nodes()
            wait_for('all nodes are ready and untainted', self.nodes_are_settled, 60)
        except BaseException:
            self.stop()
            raise
        return self

    def start_control_plane(self):
        self.authority = Authority(self.folder + '/pki')
        self.rest = Rest(self.ports['api'], self.authority.certificate)
        self.kubeconfig = components.kubeconfig(self, 'admin', {'token': 'admin-token'})
        self.launch('etcd', components.etcd(self), f'http://127.0.0.1:{self.ports["etcd"]}/health')
        self.launch('apiserver', components.apiserver(self))
        self.wait_for_apiserver()
        self.launch('manager', components.controller_manager(self))
        self.launch('scheduler', components.scheduler(self))
        self.launch('kwok', components.kwok(self))

    def launch(self, name, command, health=None, environment=None):
        program = self.programs[name] = Program(name, command, self.folder, environment, self.outlives)
        program.start()
        if health:
            self.wait_healthy(name, health)

    def wait_healthy(self, name, url):
        context = ssl.create_default_context(cafile=self.authority.certificate)

        def answers():
            self.programs[name].check()
            try:
                return urllib.request.urlopen(url, timeout=5, context=context if url.startswith('https') else None).status == 200
            except OSError:
                return False
        wait_for(name + ' is healthy', answers, 60, 0.05)

    def wait_for_apiserver(self, timeout_s=60):
        def is_ready():
            self.programs['apiserver'].check()
            return self.api('GET', '/readyz')[0] == 200
        wait_for('the API server is ready', is_ready, timeout_s, 0.05)

    def install_kinds(self):
        kinds = ['volcano', *(['jobset'] if self.with_jobset else [])]
        self.kubectl('apply', '--server-side', *(f'--filename={self.share}/{name}' for name in kinds))
        for kind in (*VOLCANO_KINDS, *(['jobset.x-k8s.io/v1alpha2/jobsets'] if self.with_jobset else [])):
            wait_for(kind + ' is served', lambda kind=kind: self.api('GET', '/apis/' + kind)[0] == 200, 30, 0.05)
        self.create('/apis/scheduling.volcano.sh/v1beta1/queues', {
            'apiVersion': 'scheduling.volcano.sh/v1beta1', 'kind': 'Queue', 'metadata': {'name': 'default'},
            'spec': {'weight': 1, 'reclaimable': True}})
        self.launch('volcano', components.volcano(self))
        wait_for('the stand-in for Volcano is ready', lambda: 'ready' in self.programs['volcano'].log(), 30, 0.05)
        if self.with_jobset:
            self.launch('jobset', *self.jobset_command())
            self.wait_healthy('jobset', f'http://127.0.0.1:{self.ports["jobset-health"]}/readyz')
            self.install_jobset_webhooks()

    def jobset_command(self):
        command, environment = components.jobset(self)
        return command, None, environment

    def install_jobset_webhooks(self):
        text = self.kubectl('create', '--dry-run=client', '-o', 'json', '-f', self.share + '/jobset-webhooks.yaml')
        decoder, documents, place = json.JSONDecoder(), [], 0
        while place < len(text.rstrip()):
            document, place = decoder.raw_decode(text, place + len(text[place:]) - len(text[place:].lstrip()))
            documents += document.get('items', [document])
        for document in components.jobset_webhooks(self, documents):
            plural = document['kind'].lower() + 's'
            self.create('/apis/admissionregistration.k8s.io/v1/' + plural, document)

    def make_nodes(self):
        for rack in self.rack_numbers():
            for tray in self.tray_numbers():
                self.create('/api/v1/nodes', nodes.node(rack, tray, self.is_spare(rack, tray), self.heavy, self.lifeless))
        for hypernode in nodes.hypernodes(self.rack_numbers()):
            self.create('/apis/topology.volcano.sh/v1alpha1/hypernodes', hypernode)

    def stop(self):
        stop_all(list(self.programs.values()))
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if kind is not None and kind is not SystemExit:
            for name in ('volcano', 'jobset', 'scheduler'):
                if name in self.programs:
                    print(f'---- {name} said', self.programs[name].log()[-2500:], sep='\n')
        self.stop()

    # ---- which nodes there are

    def rack_numbers(self):
        return range(1, self.racks + 1)

    def tray_numbers(self):
        return range(1, self.trays + 1)

    def is_spare(self, rack, tray):
        return rack > self.racks - self.spare_racks or tray > self.trays - self.spares_per_rack

    def is_spare_node(self, node):
        rack = self.rack_of(node)
        return self.is_spare(rack, self.rack_nodes(rack).index(node) + 1)

    def rack_nodes(self, rack):
        return [nodes.name(rack, tray) for tray in self.tray_numbers()]

    def all_nodes(self):
        return [name for rack in self.rack_numbers() for name in self.rack_nodes(rack)]

    def rack_of(self, node):
        """The number of the rack that holds a node."""
        return next(rack for rack in self.rack_numbers() if node in self.rack_nodes(rack))

    # ---- the API

    def api(self, method, path, body=None, user='admin', patch='merge', timeout_s=30):
        return self.rest.call(method, path, body, f'{user}-token', patch, timeout_s)

    def get(self, path):
        return must(self.api('GET', path))

    def create(self, path, document):
        return must(self.api('POST', path, document))

    def kubectl(self, *arguments, stdin=None):
        done = subprocess.run(['kubectl', '--kubeconfig', self.kubeconfig, *arguments], input=stdin, text=True,
                              capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, f'kubectl {" ".join(arguments)}: {done.stderr}'
        return done.stdout

    # ---- the product under its own permissions

    def grant(self, overlay):
        """Applies the permissions of deploy/kubernetes/OVERLAY, and none of its pods."""
        rendered = subprocess.run(['kubectl', 'kustomize', os.path.join(ROOT, 'deploy/kubernetes', overlay)], text=True,
                                  capture_output=True, timeout=60, check=False)
        assert rendered.returncode == 0, rendered.stderr
        chosen = [text for text in rendered.stdout.split('\n---\n')
                  if any(line in (f'kind: {kind}' for kind in PERMISSIONS) for line in text.splitlines())]
        self.kubectl('apply', '-f', '-', stdin='\n---\n'.join(chosen))

    def product_kubeconfig(self, credentials='token'):
        """A kubeconfig of broomd's own account: by a token file as in a pod, or by a client certificate."""
        if credentials == 'certificate':
            certificate, key = self.authority.issue_client('broomd', self.product)
            return components.kubeconfig(self, 'broomd-certificate', {'client-certificate': certificate, 'client-key': key})
        answer = self.create('/api/v1/namespaces/broomwagon/serviceaccounts/broomd/token', {
            'apiVersion': 'authentication.k8s.io/v1', 'kind': 'TokenRequest', 'spec': {'expirationSeconds': 14400}})
        path = components.write(self.folder + '/broomd.token', answer['status']['token'])
        os.chmod(path, 0o600)
        return components.kubeconfig(self, 'broomd', {'tokenFile': path})
