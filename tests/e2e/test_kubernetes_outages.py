#!/usr/bin/env python3
"""Parts of the cluster fail while broomd acts: the API server is frozen, killed and started again, the job's controller dies
between taking a Command and acting on it, or does not take it at all. Every effect happens once."""
import time

from daemon import run, wait_for
from kubernetes.cluster import Cluster
from kubernetes.scene import Scene
from kubernetes.workloads import volcano_job

FROZEN_S = 30
cluster = None


def check_moved_once(scene):
    """Rack 1 is cordoned, the job runs on the spare rack, and no node was cordoned or promised twice."""
    assert cluster.cordoned() == set(cluster.rack_nodes(1)) and cluster.racks_of('train') == {2}
    assert cluster.volcano_status('train')['retryCount'] == 1
    patched = [entry.name for entry in cluster.audit.writes(cluster.product, scene.mark)
               if (entry.verb, entry.resource) == ('patch', 'nodes') and entry.code == 200]
    assert len(patched) == len(set(patched)) + promised_twice(patched), sorted(patched)


def promised_twice(patched):
    """A spare is patched when it is promised and again when it is in use."""
    return sum(patched.count(name) == 2 for name in cluster.rack_nodes(2))


def test_an_api_server_that_is_frozen_for_half_a_minute_only_delays():
    with Scene(cluster, volcano_job('train', 16)) as scene:
        scene.training.rack_dies(1)
        scene.wait_phase('suspected')
        cluster.freeze('apiserver')
        began = time.monotonic()
        scene.wait_phase('holding', 'cordoning')
        wait_for('the freeze is over', lambda: time.monotonic() - began > FROZEN_S, FROZEN_S + 5)
        assert scene.daemon.is_ready(), 'broomd itself is well'
        assert scene.incident()['waiting_for'], 'it says what it waits for'
        cluster.thaw('apiserver')
        scene.wait_mitigated()
        check_moved_once(scene)
        assert scene.writes()['create', 'commands'] == 1, scene.writes()


def test_an_api_server_that_is_killed_while_nodes_are_cordoned_is_asked_what_it_did():
    with Scene(cluster, volcano_job('train', 16)) as scene:
        scene.training.rack_dies(1)
        wait_for('some nodes are cordoned', lambda: scene.writes()['patch', 'nodes'] >= 4, 60, 0.005)
        cluster.kill('apiserver')
        scene.wait_phase('holding', 'cordoning')
        cluster.restart('apiserver')
        scene.wait_mitigated()
        check_moved_once(scene)
        assert scene.writes()['create', 'commands'] == 1, scene.writes()


def test_a_command_that_was_taken_and_lost_is_issued_once_again():
    with Scene(cluster, volcano_job('train', 16)) as scene:
        cluster.kill('volcano')
        cluster.restart('volcano', '--die-after-command')
        scene.training.rack_dies(1)
        assert cluster.programs['volcano'].wait(60) == 3
        cluster.restart('volcano')
        scene.wait_mitigated(150)
        check_moved_once(scene)
        assert scene.writes()['create', 'commands'] == 2, scene.writes()


def test_a_command_that_nobody_takes_is_told_and_not_repeated():
    with Scene(cluster, volcano_job('train', 16)) as scene:
        cluster.freeze('volcano')
        scene.training.rack_dies(1)
        wait_for('the Command lies there', cluster.commands, 60)
        wait_for('the incident says that it is not taken', lambda: 'lies untouched' in scene.show(), 60, 1)
        cluster.thaw('volcano')
        scene.wait_mitigated()
        check_moved_once(scene)
        assert scene.writes()['create', 'commands'] == 1, scene.writes()


if __name__ == '__main__':
    # Leases as long as real ones: nodes do not become NotReady while the API server sleeps.
    with Cluster(racks=2, spare_racks=1, spares_per_rack=2, with_jobset=False, node_lease_s=20, node_grace_s=50) as cluster:
        cluster.grant('enforce')
        run([test_an_api_server_that_is_frozen_for_half_a_minute_only_delays,
             test_an_api_server_that_is_killed_while_nodes_are_cordoned_is_asked_what_it_did,
             test_a_command_that_was_taken_and_lost_is_issued_once_again,
             test_a_command_that_nobody_takes_is_told_and_not_repeated])
