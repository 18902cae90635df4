"""What tests do to a bench: nodes that die, pods that meet their fate, programs that are frozen, killed and started again."""
from daemon import wait_for

from . import nodes, workloads
from .rest import must

CONDITION = 'BroomwagonFault'


def restoring(node, is_spare, is_alive):
    """The merge-patch that takes off what somebody put on a node; {} when there is nothing."""
    metadata, spec, patch = node['metadata'], node['spec'], {}
    for kind in ('labels', 'annotations'):
        foreign = {key: None for key in metadata.get(kind, {}) if key.startswith('broomwagon.io/')}
        if foreign:
            patch.setdefault('metadata', {})[kind] = foreign
    if not is_alive:
        patch.setdefault('metadata', {}).setdefault('labels', {})['type'] = 'kwok'
    wanted = [{'key': nodes.SPARE, 'effect': 'NoSchedule'}] if is_spare else []
    if spec.get('unschedulable') or spec.get('taints', []) != wanted:
        patch['spec'] = {'unschedulable': None, 'taints': wanted or None}
    return patch


class Faults:
    # ---- people and nodes

    def patch_node(self, node, document, user='admin'):
        return must(self.api('PATCH', '/api/v1/nodes/' + node, document, user=user))

    def cordon(self, node, user='operator'):
        self.patch_node(node, {'spec': {'unschedulable': True}}, user)

    def uncordon(self, node, user='operator'):
        self.patch_node(node, {'spec': {'unschedulable': None}}, user)

    def kill_kubelet(self, node):
        """The node's lease runs out; its pods stay what they were, and those that are deleted stay Terminating."""
        self.patch_node(node, {'metadata': {'labels': {'type': None}}})

    def revive_kubelet(self, node):
        self.patch_node(node, {'metadata': {'labels': {'type': 'kwok'}}})

    def heal(self):
        """Brings every node back to how it was made, whoever changed it."""
        for name, node in self.nodes().items():
            patch = restoring(node, self.is_spare_node(name), 'type' in node['metadata']['labels'] or self.lifeless)
            if patch:
                self.patch_node(name, patch)
            if any(condition['type'] == CONDITION for condition in node['status']['conditions']):
                must(self.api('PATCH', f'/api/v1/nodes/{name}/status', {'status': {'conditions': [
                    {'$patch': 'delete', 'type': CONDITION}]}}, patch='strategic'))
        wait_for('all nodes are healed', self.nodes_are_settled, 60)

    # ---- pods

    def pod_path(self, pod, namespace='default'):
        return f'/api/v1/namespaces/{namespace}/pods/{pod}'

    def set_fate(self, pod, fate, exit_code=1):
        """fail, complete, or stay: see stages.yaml."""
        annotations = {'bench/fate': fate, 'bench/exit-code': str(exit_code)}
        must(self.api('PATCH', self.pod_path(pod), {'metadata': {'annotations': annotations}}))

    def evict(self, pod):
        """The code and document of the eviction API."""
        return self.api('POST', self.pod_path(pod) + '/eviction', {
            'apiVersion': 'policy/v1', 'kind': 'Eviction', 'metadata': {'name': pod, 'namespace': 'default'}})

    def force_delete(self, pod):
        must(self.api('DELETE', self.pod_path(pod), {'apiVersion': 'v1', 'kind': 'DeleteOptions', 'gracePeriodSeconds': 0}))

    # ---- jobs

    COLLECTIONS = {'batch.volcano.sh/v1alpha1': workloads.VOLCANO, 'jobset.x-k8s.io/v1alpha2': workloads.JOBSET,
                   'batch/v1': workloads.BATCH}

    def submit(self, document):
        return self.create(self.COLLECTIONS[document['apiVersion']].format(document['metadata']['namespace']), document)

    def remove(self, document):
        """Deletes a job and waits until its pods are gone too."""
        name, namespace = document['metadata']['name'], document['metadata']['namespace']
        path = self.COLLECTIONS[document['apiVersion']].format(namespace) + '/' + name
        code, answer = self.api('DELETE', path, {'apiVersion': 'v1', 'kind': 'DeleteOptions', 'propagationPolicy': 'Background'})
        assert code in (200, 202, 404), answer
        wait_for(f'the pods of {name} are gone', lambda: not self.pods(name, namespace), 30)

    def command(self, job, action='RestartJob', **more):
        """Volcano's way to restart by hand."""
        document = self.get(workloads.VOLCANO.format('default') + '/' + job)
        return self.create(workloads.COMMAND.format('default'), workloads.command(document, action, **more))

    # ---- programs

    def freeze(self, name):
        self.programs[name].freeze()

    def thaw(self, name):
        self.programs[name].thaw()

    def kill(self, name):
        self.programs[name].kill()

    def restart(self, name, *options):
        """Starts a program that was killed or that ended by itself; options are added for this life of it."""
        self.programs[name].start(*options)
        if name == 'apiserver':
            self.wait_for_apiserver()
