#!/usr/bin/env python3
"""broomd looks after a JobSet and after a bare Indexed Job, both with their real controllers: suspended and resumed, which spends
none of their own restarts, on nodes that are well."""
from daemon import run, wait_for
from kubernetes import nodes
from kubernetes.cluster import Cluster
from kubernetes.scene import Scene
from kubernetes.workloads import indexed_job, jobset

cluster = None


def test_a_rack_fault_moves_a_jobset_to_the_spare_rack():
    with Scene(cluster, jobset('train', 16)) as scene:
        scene.training.rack_dies(1)
        incident = scene.wait_mitigated()
        assert (incident['scope'], incident['domain']) == ('rack', nodes.rack_name(1)), incident['domain']
        assert cluster.cordoned() == set(cluster.rack_nodes(1)) and cluster.racks_of('train') == {2}
        status = cluster.jobset_status('train')
        assert status.get('restarts', 0) == 0 and status.get('restartsCountTowardsMax', 0) == 0, status
        assert scene.training.attempt == 2 and not cluster.uids('train') & scene.first_uids
        assert scene.writes()['patch', 'jobsets'] == 2, 'once to suspend, once to resume: ' + str(scene.writes())


def test_a_tray_fault_of_a_jobset_takes_a_spare_of_the_same_rack():
    with Scene(cluster, jobset('train', 16), credentials='certificate') as scene:
        used = scene.used()
        victim = sorted(used)[7]
        scene.training.tray_dies(victim)
        scene.wait_mitigated()
        assert cluster.cordoned() == {victim} and cluster.racks_of('train') == scene.first_racks
        assert len(scene.used() - used) == 1 and victim not in scene.used()


def test_a_tray_fault_of_a_bare_indexed_job_takes_a_spare():
    with Scene(cluster, indexed_job('train', 8)) as scene:
        victim = sorted(scene.used())[2]
        scene.training.tray_dies(victim)
        scene.wait_mitigated()
        assert cluster.cordoned() == {victim} and victim not in scene.used()
        assert scene.writes()['patch', 'jobs'] == 2, scene.writes()
        status = cluster.get('/apis/batch/v1/namespaces/default/jobs/train')['status']
        assert status.get('active') == 8 and not status.get('failed'), status


def test_one_pod_of_a_gang_that_is_replaced_alone_is_told_and_left_to_people():
    with Scene(cluster, indexed_job('train', 8)) as scene:
        name = cluster.running('train')[3]['metadata']['name']
        eviction = {'apiVersion': 'policy/v1', 'kind': 'Eviction', 'metadata': {'name': name, 'namespace': 'default'}}
        code, answer = cluster.api('POST', f'/api/v1/namespaces/default/pods/{name}/eviction', eviction)
        assert code in (200, 201), answer
        wait_for('its controller replaced it alone', lambda: len(cluster.uids('train') - scene.first_uids) == 1
                 and len(cluster.uids('train') & scene.first_uids) == 7)
        incident = scene.wait_incident('it is told', lambda it: it['source'] == 'scheduler' and it['phase'] == 'confirmed', 150)
        assert (incident['kind'], incident['scope']) == ('hang', 'job'), incident
        assert incident['state']['workload'], 'a rule with a plan to restart would know what'
        assert '1 of its 8 pods was made anew alone' in scene.timeline(), scene.timeline()
        assert not cluster.cordoned() and ('patch', 'jobs') not in scene.writes(), scene.writes()


if __name__ == '__main__':
    with Cluster(racks=2, spare_racks=1, spares_per_rack=2) as cluster:
        cluster.grant('enforce')
        run([test_a_rack_fault_moves_a_jobset_to_the_spare_rack,
             test_a_tray_fault_of_a_jobset_takes_a_spare_of_the_same_rack,
             test_a_tray_fault_of_a_bare_indexed_job_takes_a_spare,
             test_one_pod_of_a_gang_that_is_replaced_alone_is_told_and_left_to_people])
