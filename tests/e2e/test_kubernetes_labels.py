#!/usr/bin/env python3
"""The labels that broomd writes where a site asks for them, under the permissions of deploy/kubernetes/enforce."""
from daemon import run, wait_for
from kubernetes.cluster import Cluster
from kubernetes.scene import Scene
from kubernetes.workloads import indexed_job

cluster = None
RACK, RAIL = 'broomwagon.io/rack', 'broomwagon.io/rail'


def test_labels_say_where_nodes_stand_and_whose_rails_carry_the_job():
    with Scene(cluster, indexed_job('train', 6), options=('--set', 'actuator.write_topology_labels=true')) as scene:
        def labels(node):
            return cluster.get('/api/v1/nodes/' + node)['metadata']['labels']
        used = scene.used()
        assert len(scene.first_racks) == 2, 'its all-reduce leaves the NVLink domain'
        wait_for('the rails that carry the job are ready', lambda: all(labels(node).get(RAIL) == 'ready' for node in used), 60)
        wait_for('every node has its rack', lambda: all(RACK in labels(node) for node in cluster.all_nodes()))
        assert not [node for node in cluster.all_nodes() if node not in used and RAIL in labels(node)], 'of a spare nothing is known'
        assert not scene.incidents()


if __name__ == '__main__':
    with Cluster(racks=2, trays=4, spares_per_rack=1) as cluster:
        cluster.grant('enforce')
        run([test_labels_say_where_nodes_stand_and_whose_rails_carry_the_job])
