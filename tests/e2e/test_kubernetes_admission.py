#!/usr/bin/env python3
"""Which parts of a node the API server lets broomd's account change, under deploy/kubernetes/enforce as it is: its own keys,
and nothing else, whatever a defect of ours may send."""
from daemon import run, wait_for
from kubernetes.cluster import Cluster

cluster = None
OURS = 'broomwagon.io/'
POLICY = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/broomd-node-fields'


class Account:
    """broomd's own account, and a node that somebody else has written on."""

    def __init__(self):
        with open(cluster.folder + '/broomd.token', encoding='utf-8') as file:
            self.token = file.read().strip()
        self.node = sorted(cluster.all_nodes())[0]

    def path(self, status=False):
        return f'/api/v1/nodes/{self.node}' + ('/status' if status else '')

    def read(self):
        return cluster.get(self.path())

    def patch(self, body, kind='merge', status=False):
        """'yes', or why not."""
        code, answer = cluster.rest.call('PATCH', self.path(status), body, self.token, kind)
        return 'yes' if code == 200 else f'{code} {answer.get("message")}'


def test_what_is_ours_may_be_changed():
    taints = account.read()['spec'].get('taints', [])
    ours = {'key': OURS + 'quarantine', 'value': 'inc-1', 'effect': 'NoSchedule'}
    version = account.read()['metadata']['resourceVersion']
    answer = account.patch({'metadata': {'resourceVersion': version, 'labels': {OURS + 'state': 'quarantined', OURS + 'rail': 'degraded'},
                                         'annotations': {OURS + 'incident': 'INC-1'}},
                            'spec': {'unschedulable': True, 'taints': taints + [ours]}})
    assert answer == 'yes', answer
    condition = {'type': 'BroomwagonFault', 'status': 'True', 'reason': 'Quarantined', 'message': 'INC-1'}
    answer = account.patch({'status': {'conditions': [condition]}}, 'strategic', status=True)
    assert answer == 'yes', answer
    # The unschedulable taint is Kubernetes' own: it comes and goes with the cordon, by another hand.
    wait_for('the taint of the cordon', lambda: any(each['key'] == 'node.kubernetes.io/unschedulable'
                                                    for each in account.read()['spec'].get('taints', [])))
    taints = [each for each in account.read()['spec']['taints'] if each['key'] != ours['key']]
    answer = account.patch({'metadata': {'labels': {OURS + 'state': None, OURS + 'rail': None}, 'annotations': {OURS + 'incident': None}},
                            'spec': {'unschedulable': None, 'taints': taints}})
    assert answer == 'yes', answer


def test_nothing_else_may():
    foreign = {'key': 'example.com/mine', 'value': 'x', 'effect': 'NoSchedule'}
    was = cluster.api('PATCH', account.path(), {'metadata': {'labels': {'example.com/mine': 'x'},
                                                             'annotations': {'example.com/mine': 'x'}},
                                                'spec': {'taints': [foreign]}})
    assert was[0] == 200, was
    refused = {
        'labels': [{'metadata': {'labels': {key: value}}} for key, value in
                   (('example.com/mine', 'y'), ('example.com/mine', None), ('example.com/new', 'x'), ('broomwagon.iox/a', 'x'))],
        'annotations': [{'metadata': {'annotations': {key: value}}} for key, value in
                        (('example.com/mine', 'y'), ('example.com/mine', None), ('example.com/new', 'x'))],
        'taints': [{'spec': {'taints': taints}} for taints in
                   ([], [dict(foreign, value='y')], [foreign, dict(foreign, key='example.com/new')])],
        'finalizers': [{'metadata': {'finalizers': ['example.com/stay']}}],
    }
    for what, bodies in refused.items():
        for body in bodies:
            answer = account.patch(body)
            assert answer.startswith('422') and 'broomd-node-fields' in answer and what in answer, (body, answer)
            assert account.patch(body, status=True) != 'yes' or what == 'taints', body
    ready = {'type': 'Ready', 'status': 'False', 'reason': 'ByDefect'}
    answer = account.patch({'status': {'conditions': [ready]}}, 'strategic', status=True)
    assert answer.startswith('422') and 'BroomwagonFault' in answer, answer
    answer = account.patch({'status': {'capacity': {'nvidia.com/gpu': '0'}}}, status=True)
    assert answer.startswith('422'), answer
    node = account.read()
    assert node['metadata']['labels']['example.com/mine'] == 'x' and foreign in node['spec']['taints'], node


def test_others_are_not_held_by_it():
    answer = cluster.api('PATCH', account.path(), {'metadata': {'labels': {'example.com/other': 'x'}}})
    assert answer[0] == 200, answer


if __name__ == '__main__':
    with Cluster(racks=1, trays=2) as cluster:
        cluster.grant('enforce')
        cluster.product_kubeconfig()
        account = Account()
        tries = iter(range(1000))     # a patch that changes nothing is no change
        wait_for('the policy is in force',
                 lambda: account.patch({'metadata': {'labels': {'example.com/probe': str(next(tries))}}}) != 'yes')
        warnings = wait_for('the policy was checked', lambda: cluster.get(POLICY).get('status')).get('typeChecking', {})
        assert not warnings.get('expressionWarnings'), warnings
        run([test_what_is_ours_may_be_changed, test_nothing_else_may, test_others_are_not_held_by_it])
