#!/usr/bin/env python3
"""broomd is killed with SIGKILL at each state of an incident on a real API server, in the middle of its patches too, and started
again: the server's audit log shows each effect once."""
import collections

from daemon import run, wait_for
from kubernetes.cluster import Cluster
from kubernetes.scene import Scene
from kubernetes.workloads import jobset, volcano_job

cluster = None


CUT = 504       # what the server notes when the asker is gone before the answer: it may have been done


def patches(scene, resource, rack):
    """Codes of the patches of each object of a rack, in order."""
    codes = collections.defaultdict(list)
    for entry in cluster.audit.writes(cluster.product, scene.mark):
        if (entry.verb, entry.resource) == ('patch', resource) and entry.name in cluster.rack_nodes(rack):
            codes[entry.name].append(entry.code)
    return codes


def check_patched(scene, rack, names, times):
    """Each of these nodes was patched so many times, and no other: nothing is asked again but what may not have been done."""
    codes = patches(scene, 'nodes', rack)
    assert set(codes) == set(names), set(codes) ^ set(names)
    for name, seen in codes.items():
        assert set(seen) <= {200, CUT} and seen.count(200) <= times <= len(seen), (name, seen)


def kill_at(scene, what, condition):
    wait_for(what, condition, 90, 0.003)
    scene.daemon.kill()
    print(f'killed: {what}', flush=True)
    scene.daemon.start()


ORDER = ('suspected', 'confirmed', 'holding', 'cordoning', 'restarting', 'placing', 'resuming', 'verifying', 'done')


def reached(scene, phase):
    """Phases may be shorter than a look: what has gone past has been reached."""
    return lambda: any(ORDER.index(each['phase']) >= ORDER.index(phase) for each in scene.incidents())


def check_once(scene):
    assert scene.writes()['create', 'commands'] == 1 and cluster.volcano_status('train')['retryCount'] == 1
    wait_for('the spares are ordinary trays', lambda: all(
        not node['spec'].get('taints') for name, node in cluster.nodes().items() if name in scene.used()))
    check_patched(scene, 1, cluster.rack_nodes(1), 1)       # a cordon
    check_patched(scene, 2, scene.used(), 2)                # a promise, and its end


def test_a_suspicion_that_outlives_a_kill_is_still_one_of_the_whole_rack():
    with Scene(cluster, volcano_job('train', 16)) as scene:
        scene.training.rack_dies(1)
        kill_at(scene, 'suspected', reached(scene, 'suspected'))
        kill_at(scene, 'confirmed', reached(scene, 'confirmed'))
        scene.wait_mitigated(120)
        check_once(scene)


def test_a_rack_fault_of_a_volcano_job_survives_a_kill_at_each_state():
    with Scene(cluster, volcano_job('train', 16)) as scene:
        scene.training.rack_dies(1)
        kill_at(scene, 'a third of the rack is cordoned', lambda: len(patches(scene, 'nodes', 1)) >= 6)
        kill_at(scene, 'some spares are promised', lambda: len(patches(scene, 'nodes', 2)) >= 4)
        kill_at(scene, 'the Command is there', lambda: scene.writes()['create', 'commands'])
        kill_at(scene, 'placing', reached(scene, 'placing'))
        kill_at(scene, 'resuming', reached(scene, 'resuming'))
        kill_at(scene, 'verifying', reached(scene, 'verifying'))
        scene.wait_mitigated(120)
        check_once(scene)


def test_a_rack_fault_of_a_jobset_survives_kills_around_its_suspension():
    with Scene(cluster, jobset('train', 16)) as scene:
        scene.training.rack_dies(1)
        kill_at(scene, 'the JobSet is suspended', lambda: scene.writes()['patch', 'jobsets'] >= 1)
        kill_at(scene, 'the JobSet is resumed', lambda: scene.writes()['patch', 'jobsets'] >= 2)
        kill_at(scene, 'verifying', reached(scene, 'verifying'))
        scene.wait_mitigated(120)
        assert scene.writes()['patch', 'jobsets'] == 2, scene.writes()
        check_patched(scene, 1, cluster.rack_nodes(1), 1)
        assert cluster.racks_of('train') == {2} and not cluster.jobset_status('train').get('restarts')


if __name__ == '__main__':
    with Cluster(racks=2, spare_racks=1, spares_per_rack=2) as cluster:
        cluster.grant('enforce')
        run([test_a_suspicion_that_outlives_a_kill_is_still_one_of_the_whole_rack,
             test_a_rack_fault_of_a_volcano_job_survives_a_kill_at_each_state,
             test_a_rack_fault_of_a_jobset_survives_kills_around_its_suspension])
