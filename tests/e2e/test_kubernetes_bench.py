#!/usr/bin/env python3
"""What the other Kubernetes tests rely on: the real API server, scheduler and controllers of the bench do what a cluster does, and
the stand-in for Volcano's job controller has the ways of the real one that matter (tests/e2e/kubernetes/README.md)."""
import os
import time

from daemon import run, wait_for
from kubernetes import nodes
from kubernetes.cluster import Cluster
from kubernetes.rest import must
from kubernetes.workloads import RESTART_ON_LOSS, indexed_job, jobset, volcano_job

cluster = None


def restart_and_wait(name, pods, retries):
    before = cluster.uids(name)
    cluster.command(name)
    status = cluster.wait_phase(name, 'Running', retries=retries)
    return status, cluster.wait_running(name, pods, without=before)


def test_a_volcano_job_runs_in_one_rack_and_leaves_spares_alone():
    cluster.submit(volcano_job('train', 16, max_retry=3))
    cluster.wait_phase('train', 'Running')
    cluster.wait_running('train', 16)
    assert len(cluster.racks_of('train')) == 1, cluster.racks_of('train')
    spares = {name for name, node in cluster.nodes().items() if node['spec'].get('taints')}
    assert len(spares) == 4 and not spares & set(cluster.placement('train').values())
    status = cluster.volcano_status('train')
    assert 'retryCount' not in status and 'version' not in status, status
    labels = cluster.pods('train')[0]['metadata']['labels']
    assert labels['volcano.sh/job-name'] == 'train' and labels['volcano.sh/task-spec'] == 'worker', labels


def test_a_command_restarts_it_once_and_leaves_no_history():
    status, _ = restart_and_wait('train', 16, retries=1)
    assert status['retryCount'] == 1 and status['version'] == 1, status
    phases = [condition['status'] for condition in status['conditions']]
    assert phases == ['Restarting', 'Pending', 'Running'], phases
    assert not cluster.commands()


def test_a_command_for_another_version_lies_there_for_ever():
    cluster.command('train', name='wrong', target_version='v1alpha1')
    cluster.command('train', action='SyncJob', name='right')
    wait_for('the right one is taken', lambda: cluster.commands() == ['wrong'])
    must(cluster.api('DELETE', '/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands/wrong'))
    assert cluster.volcano_status('train')['retryCount'] == 1


def test_a_command_is_lost_when_the_controller_dies_after_taking_it():
    cluster.kill('volcano')
    cluster.restart('volcano', '--die-after-command')
    before = cluster.uids('train')
    cluster.command('train')
    assert cluster.programs['volcano'].wait() == 3
    assert not cluster.commands()
    cluster.restart('volcano')
    restart_and_wait('train', 16, retries=2)
    assert cluster.volcano_status('train')['retryCount'] == 2 and not cluster.uids('train') & before


def test_the_last_try_fails_for_good_and_its_version_runs_on():
    cluster.command('train')
    status = cluster.wait_phase('train', 'Failed', retries=3)
    wait_for('the version runs on', lambda: cluster.volcano_status('train')['version'] > status['version'] + 2)
    cluster.command('train')
    wait_for('a Command is taken all the same', lambda: not cluster.commands())
    assert cluster.volcano_status('train')['state']['phase'] == 'Failed'
    assert not cluster.running('train')
    cluster.remove(volcano_job('train'))


def test_a_policy_restarts_the_job_when_a_pod_is_evicted_or_fails():
    cluster.submit(volcano_job('policies', 4, policies=RESTART_ON_LOSS))
    before = cluster.wait_running('policies', 4)
    assert cluster.evict('policies-worker-1')[0] == 201
    before = cluster.wait_running('policies', 4, without=before)
    assert cluster.wait_phase('policies', 'Running', retries=1)['retryCount'] == 1, 'four pods went, one restart was due'
    cluster.set_fate('policies-worker-2', 'fail', 7)
    cluster.wait_running('policies', 4, without=before)
    cluster.wait_phase('policies', 'Running', retries=2)   # a job that is deleted in mid-restart may leave pods for a while
    cluster.remove(volcano_job('policies'))


def test_a_partition_restarts_alone():
    restart = [{'event': 'PodFailed', 'action': 'RestartPartition'}]
    job = volcano_job('parts', 8, partition_size=4, task_policies=restart)
    cluster.submit(job)
    before = cluster.wait_running('parts', 8)
    cluster.set_fate('parts-worker-5', 'fail')
    wait_for('half of the pods are new', lambda: len(cluster.uids('parts')) == 8 and len(cluster.uids('parts') & before) == 4)
    kept = {pod['metadata']['labels']['volcano.sh/partition-id'] for pod in cluster.pods('parts') if pod['metadata']['uid'] in before}
    assert kept == {'0'}, kept
    assert cluster.wait_phase('parts', 'Running', retries=1)['retryCount'] == 1
    cluster.remove(job)


def test_pods_of_a_dead_node_hold_a_restart_until_they_are_deleted_by_force():
    cluster.submit(volcano_job('dead', 16))
    cluster.wait_running('dead', 16)
    node = cluster.placement('dead')[0]
    cluster.kill_kubelet(node)
    wait_for('the node is not ready', lambda: not cluster.is_ready(node), 40)
    cluster.cordon(node)
    cluster.command('dead')
    wait_for('one pod stays Terminating', lambda: [pod['metadata']['name'] for pod in cluster.stuck('dead')] == ['dead-worker-0'])
    wait_for('the others are made again', lambda: len(cluster.pods('dead')) == 16)
    assert cluster.evict('dead-worker-0')[0] == 201
    cluster.submit(volcano_job('later', 1))
    cluster.wait_running('later', 1)
    cluster.remove(volcano_job('later'))
    status = cluster.volcano_status('dead')
    assert status['state']['phase'] == 'Restarting' and status['terminating'] == 1 and not cluster.running('dead'), status
    cluster.force_delete('dead-worker-0')
    cluster.wait_phase('dead', 'Running', retries=1)
    cluster.wait_running('dead', 16)
    assert node not in cluster.placement('dead').values()
    cluster.revive_kubelet(node)
    cluster.uncordon(node)
    wait_for('the node is back', cluster.nodes_are_settled, 40)
    cluster.remove(volcano_job('dead'))


def test_a_jobset_takes_one_rack_and_suspend_is_its_restart():
    cluster.submit(jobset('set', 16))
    before = cluster.wait_running('set', 16, 90)
    assert len(cluster.racks_of('set')) == 1
    path = '/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/set'
    must(cluster.api('PATCH', path, {'spec': {'suspend': True}}))
    wait_for('nothing runs', lambda: not cluster.pods('set'))
    must(cluster.api('PATCH', path, {'spec': {'suspend': False}}))
    cluster.wait_running('set', 16, without=before)
    assert cluster.jobset_status('set').get('restarts', 0) == 0
    cluster.remove(jobset('set'))


def test_a_bare_indexed_job_runs():
    cluster.submit(indexed_job('plain', 4))
    cluster.wait_running('plain', 4)
    assert sorted(cluster.placement('plain')) == [0, 1, 2, 3]
    cluster.remove(indexed_job('plain'))


def test_a_promised_spare_is_for_its_job_alone():
    spare = nodes.name(1, 18)
    cluster.patch_node(spare, {'spec': {'taints': [{'key': nodes.SPARE, 'value': 'default.mine', 'effect': 'NoSchedule'}]}})
    others = [node for node in cluster.all_nodes() if node != spare]
    for node in others:
        cluster.cordon(node)
    cluster.submit(volcano_job('yours', 1))
    cluster.submit(volcano_job('mine', 1))
    cluster.wait_running('mine', 1)
    assert cluster.placement('mine') == {0: spare} and not cluster.running('yours')
    for node in others:
        cluster.uncordon(node)
    cluster.wait_running('yours', 1)
    cluster.patch_node(spare, {'spec': {'taints': [{'key': nodes.SPARE, 'effect': 'NoSchedule'}]}})
    cluster.remove(volcano_job('mine'))
    cluster.remove(volcano_job('yours'))


def test_the_api_server_is_frozen_killed_and_back():
    began = time.monotonic()
    cluster.freeze('apiserver')
    assert cluster.api('GET', '/api/v1/nodes', timeout_s=1)[0] == 0
    cluster.thaw('apiserver')
    assert cluster.api('GET', '/api/v1/nodes')[0] == 200
    cluster.kill('apiserver')
    assert cluster.api('GET', '/api/v1/nodes')[0] == 0
    cluster.restart('apiserver')
    assert len(cluster.nodes()) == 36 and time.monotonic() - began < 30


def test_the_audit_log_counts_what_the_product_asks_for_under_its_own_permissions():
    cluster.grant('enforce')
    node, mark = nodes.name(2, 1), cluster.audit.mark()
    for credentials in ('token', 'certificate'):
        config = cluster.product_kubeconfig(credentials)
        shown = cluster.kubectl('--kubeconfig', config, 'get', 'node', node, '-o', 'name')
        assert shown.strip() == 'node/' + node
        cluster.kubectl('--kubeconfig', config, 'cordon', node)
        cluster.kubectl('--kubeconfig', config, 'uncordon', node)
    counts = cluster.audit.counts(cluster.product, mark)
    assert counts['patch', 'nodes'] == 4 and counts['get', 'nodes'] >= 2, counts
    assert cluster.audit.write_counts(cluster.product, mark) == {('patch', 'nodes'): 4}
    token = open(cluster.folder + '/broomd.token', encoding='utf-8').read()
    code, _ = cluster.rest.call('DELETE', '/api/v1/nodes/' + node, token=token)
    assert code == 403 and cluster.audit.write_counts(cluster.product, mark, accepted_only=False)['delete', 'nodes'] == 1


if __name__ == '__main__':
    with Cluster(racks=2, spares_per_rack=2) as cluster:
        print('bench in', os.path.basename(cluster.made), flush=True)
        run([test_a_volcano_job_runs_in_one_rack_and_leaves_spares_alone, test_a_command_restarts_it_once_and_leaves_no_history,
             test_a_command_for_another_version_lies_there_for_ever,
             test_a_command_is_lost_when_the_controller_dies_after_taking_it,
             test_the_last_try_fails_for_good_and_its_version_runs_on,
             test_a_policy_restarts_the_job_when_a_pod_is_evicted_or_fails, test_a_partition_restarts_alone,
             test_pods_of_a_dead_node_hold_a_restart_until_they_are_deleted_by_force,
             test_a_jobset_takes_one_rack_and_suspend_is_its_restart, test_a_bare_indexed_job_runs,
             test_a_promised_spare_is_for_its_job_alone, test_the_api_server_is_frozen_killed_and_back,
             test_the_audit_log_counts_what_the_product_asks_for_under_its_own_permissions])
