#!/usr/bin/env python3
"""A node dies with its kubelet, so that its pods never end and hold the restart up. They are deleted by force only when somebody
vouches that the node is off, the plan allows it, and the permission is there."""
from daemon import run, wait_for
from kubernetes.cluster import Cluster
from kubernetes.scene import Scene, never
from kubernetes.workloads import volcano_job

cluster = None


def die(scene):
    """Node and processes go at once; returns the node. The restart is under way and waits for the pod that never ends."""
    victim = sorted(scene.used())[5]
    cluster.kill_kubelet(victim)
    scene.training.tray_dies(victim)
    wait_for('the job is told to restart', lambda: cluster.volcano_status('train').get('retryCount') == 1, 60)
    stuck = wait_for('one pod never ends', lambda: len(cluster.stuck('train')) == 1 and cluster.stuck('train'))
    assert stuck[0]['spec']['nodeName'] == victim
    scene.wait_incident('it names the node whose pods do not end', lambda it: victim in (it['waiting_for'] or ''))
    return victim, stuck[0]['metadata']['name']


def test_pods_of_a_dead_node_wait_until_somebody_says_that_it_is_off():
    with Scene(cluster, volcano_job('train', 16), restart='force_delete: fenced') as scene:
        victim, pod = die(scene)
        assert not scene.writes()['delete', 'pods'], 'cordoned is not fenced'
        scene.daemon.broom('fenced', victim, '--reason', 'PDU outlet is off', check=0)
        scene.wait_mitigated()
        deleted = [entry.name for entry in cluster.audit.writes(cluster.product, scene.mark) if entry.verb == 'delete']
        assert deleted == [pod], deleted
        assert cluster.volcano_status('train')['retryCount'] == 1 and scene.writes()['create', 'commands'] == 1


def test_an_out_of_service_taint_says_it_too():
    with Scene(cluster, volcano_job('train', 16), restart='force_delete: fenced') as scene:
        victim, _ = die(scene)
        cluster.kubectl('taint', 'node', victim, 'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute')
        scene.wait_mitigated()
        assert victim not in scene.used()


def test_without_the_policy_nothing_is_deleted_by_force():
    with Scene(cluster, volcano_job('train', 16)) as scene:
        victim, pod = die(scene)
        scene.daemon.broom('fenced', victim, '--reason', 'PDU outlet is off', check=0)
        wait_for('it is written down', lambda: 'PDU outlet is off' in scene.timeline())
        never('a pod was deleted', lambda: scene.writes()['delete', 'pods'] or not cluster.stuck('train'), 4)
        cluster.force_delete(pod)
        scene.wait_mitigated()
        assert not scene.writes()['delete', 'pods']


if __name__ == '__main__':
    with Cluster(racks=1, spares_per_rack=2, with_jobset=False) as cluster:
        cluster.grant('force-delete')
        run([test_pods_of_a_dead_node_wait_until_somebody_says_that_it_is_off, test_an_out_of_service_taint_says_it_too,
             test_without_the_policy_nothing_is_deleted_by_force])
