#!/usr/bin/env python3
"""What broomd asks of the API server, counted by the server's own audit log: nothing but reads when it observes, whatever happens;
and when it enforces, each permission that deploy/kubernetes gives is used, and none is missing."""
from daemon import run, wait_for
from kubernetes.cluster import Cluster
from kubernetes.scene import Scene, never
from kubernetes.workloads import indexed_job, jobset, volcano_job

ELSEWHERE = {('delete', 'commands')}     # test_kubernetes_withdrawal.py shows that it is used
cluster = None


def refused(since):
    return [entry for entry in cluster.audit.entries(cluster.product, since) if entry.code in (401, 403)]


def test_an_observing_broomd_writes_nothing_under_a_storm_of_faults():
    cluster.grant('base')
    with Scene(cluster, volcano_job('train', 16), mode='observe') as scene:
        scene.training.rack_dies(1)
        wait_for('the rack is accused', lambda: any(each['scope'] == 'rack' for each in scene.incidents()), 60)
        for node in cluster.all_nodes():
            scene.training.event(node, 'xid', gpu=1, code=79)
        for node in cluster.rack_nodes(1)[:3]:
            cluster.kill_kubelet(node)
        cluster.cordon(cluster.rack_nodes(1)[5])
        wait_for('nodes are not ready', lambda: not cluster.is_ready(cluster.rack_nodes(1)[0]), 40)
        never('it wrote', lambda: cluster.audit.writes(cluster.product, scene.mark), 5)
        reads = cluster.audit.counts(cluster.product, scene.mark)
        assert reads['watch', 'nodes'] >= 1 and reads['list', 'pods'] >= 1, reads
        assert not cluster.audit.writes(cluster.product, scene.mark), cluster.audit.writes(cluster.product, scene.mark)
        assert not refused(scene.mark), refused(scene.mark)[:5]
        assert 'Would cordon the rack' in scene.daemon.log(), 'what it would do is told'


def allowed():
    """(verb, resource) of all that the roles of the account give, for kinds that are installed here."""
    installed = {'', 'batch', 'policy', 'bus.volcano.sh', 'batch.volcano.sh', 'scheduling.volcano.sh', 'topology.volcano.sh',
                 'jobset.x-k8s.io'}
    pairs = set()
    for kind in ('clusterroles', 'roles'):
        for role in cluster.get(f'/apis/rbac.authorization.k8s.io/v1/{kind}')['items']:
            if role['metadata']['name'].startswith('broomd'):
                for rule in role['rules']:
                    if set(rule.get('apiGroups', ())) & installed:
                        pairs |= {(verb, resource) for verb in rule['verbs'] for resource in rule['resources']}
    return pairs


BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
BUDGET = {'apiVersion': 'policy/v1', 'kind': 'PodDisruptionBudget', 'metadata': {'name': 'keep-one'},
          'spec': {'minAvailable': 1, 'selector': {'matchLabels': {'app': 'sidecar'}}}}


def sidecar(node):
    """Somebody else's pod on a tray, without GPUs, that a budget guards."""
    job = indexed_job('sidecar', 1, app='sidecar')
    pod = job['spec']['template']['spec']
    pod['nodeName'], pod['containers'][0]['resources'] = node, {}
    return job


def test_an_enforcing_broomd_uses_every_permission_and_lacks_none():
    cluster.grant('force-delete')
    everything = cluster.audit.mark()
    with Scene(cluster, volcano_job('train', 16), restart='force_delete: fenced', drain=True) as scene:
        victim = sorted(scene.used())[0]
        cluster.submit(sidecar(victim))
        cluster.wait_running('sidecar', 1)
        cluster.create(BUDGETS, BUDGET)
        wait_for('the budget is counted', lambda: cluster.get(BUDGETS + '/keep-one').get('status', {}).get('currentHealthy') == 1)
        cluster.kill_kubelet(victim)
        scene.training.tray_dies(victim)
        scene.wait_phase('restarting', 'placing')
        scene.daemon.broom('fenced', victim, '--reason', 'off', check=0)
        scene.wait_mitigated()
    with Scene(cluster, jobset('train', 16)) as scene:
        scene.training.rack_dies(1)
        scene.wait_mitigated()
    assert not refused(everything), refused(everything)[:5]
    unused = allowed() - set(cluster.audit.counts(cluster.product, everything)) - ELSEWHERE
    assert not unused, sorted(unused)


if __name__ == '__main__':
    with Cluster(racks=2, spare_racks=1, spares_per_rack=2) as cluster:
        run([test_an_observing_broomd_writes_nothing_under_a_storm_of_faults,
             test_an_enforcing_broomd_uses_every_permission_and_lacks_none])
