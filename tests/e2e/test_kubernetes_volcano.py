#!/usr/bin/env python3
"""broomd looks after a Volcano job on the bench (kubernetes/README.md: everything is real but Volcano's own controller and the
containers): racks and trays fail, people cordon and uncordon, spares are missing."""
import http.server
import json
import os
import tempfile
import threading

from daemon import run, wait_for
from kubernetes import nodes
from kubernetes.cluster import Cluster
from kubernetes.scene import Scene, never
from kubernetes.workloads import indexed_job, volcano_job

SPARE_RACK = 2
cluster = None


def foreign_parts(node):
    """What of a node is none of ours: labels, annotations and taints that are not broomwagon.io's or Kubernetes' own."""
    metadata = node['metadata']
    return json.dumps([{key: value for key, value in metadata[kind].items() if 'broomwagon.io/' not in key}
                       for kind in ('labels', 'annotations')], sort_keys=True)


def taint(node, key):
    return [each for each in cluster.node(node)['spec'].get('taints', []) if each['key'] == key]


def test_a_rack_fault_moves_the_job_to_the_spare_rack_and_nobody_else_gets_it():
    document, hungry = volcano_job('train', 16), volcano_job('hungry', 16)
    with Scene(cluster, document) as scene:
        before = {name: foreign_parts(node) for name, node in cluster.nodes().items()}
        cluster.submit(hungry)
        scene.training.rack_dies(1)
        incident = scene.wait_mitigated()
        about = incident['scope'], incident['domain'], incident['severity']
        assert about == ('rack', nodes.rack_name(1), 0), about
        assert cluster.cordoned() == set(cluster.rack_nodes(1))
        assert cluster.racks_of('train') == {SPARE_RACK} and not cluster.running('hungry')
        assert cluster.volcano_status('train')['retryCount'] == 1
        assert scene.training.attempt == 2
        writes = scene.writes()
        assert writes['create', 'commands'] == 1 and writes['patch', 'nodes/status'] == 18, writes
        for name, node in cluster.nodes().items():
            assert foreign_parts(node) == before[name], name
        faulty = cluster.rack_nodes(1)[0]
        assert taint(faulty, 'broomwagon.io/quarantine') and not taint(faulty, nodes.SPARE)[1:]
        events = cluster.get('/api/v1/namespaces/default/events')['items']
        told = {(event['involvedObject']['kind'], event['involvedObject']['name']) for event in events
                if event.get('reportingComponent', event.get('source', {}).get('component')) == 'broomd'}
        assert ('Node', faulty) in told and ('Job', 'train') in told, sorted(told)[:5]
        cluster.remove(hungry)


def test_a_tray_fault_takes_a_spare_of_the_same_rack():
    with Scene(cluster, volcano_job('train', 16)) as scene:
        rack, used = next(iter(scene.first_racks)), scene.used()
        victim = sorted(used)[3]
        scene.training.tray_dies(victim)
        incident = scene.wait_mitigated()
        assert incident['nodes'] == [victim], incident['nodes']
        assert cluster.cordoned() == {victim} and cluster.racks_of('train') == {rack}
        came, = scene.used() - used
        assert scene.used() == used - {victim} | {came}
        assert not taint(came, nodes.SPARE), 'a spare that is in use is none any more'
        others = [node for node in cluster.rack_nodes(rack)[16:] if node != came]
        assert all(taint(node, nodes.SPARE) == [{'key': nodes.SPARE, 'effect': 'NoSchedule'}] for node in others)
        assert scene.writes()['create', 'commands'] == 1


def take_spares_away():
    """A person has cordoned every spare."""
    spares = [node for node in cluster.all_nodes() if cluster.is_spare_node(node)]
    for node in spares:
        cluster.cordon(node)
    return spares


def test_without_a_spare_it_holds_and_says_how_many_are_missing():
    with Scene(cluster, volcano_job('train', 16)) as scene:
        spares = take_spares_away()
        victim = sorted(scene.used())[0]
        scene.training.tray_dies(victim)
        incident = scene.wait_phase('holding')
        assert 'spare' in incident['waiting_for'] and '1' in incident['waiting_for'], incident['waiting_for']
        assert cluster.cordoned() == {victim, *spares} and not scene.writes()['create', 'commands']
        cluster.uncordon(cluster.rack_nodes(1)[17])
        scene.wait_mitigated()
        assert cluster.rack_nodes(1)[17] in scene.used()


def test_a_declined_incident_takes_off_its_own_cordons_and_keeps_those_of_people():
    with Scene(cluster, volcano_job('train', 16)) as scene:
        spares = take_spares_away()
        theirs = sorted(scene.used())[:2]
        for node in theirs:
            cluster.cordon(node)
        scene.training.rack_dies(1)
        incident = scene.wait_phase('holding')
        assert set(cluster.rack_nodes(1)) <= cluster.cordoned()
        scene.daemon.broom('incidents', 'decline', incident['ref'], 'the switch was rebooted on purpose', check=0)
        wait_for('our cordons are off', lambda: cluster.cordoned() == {*spares, *theirs})
        for name in cluster.rack_nodes(1):
            assert not taint(name, 'broomwagon.io/quarantine'), name


def test_a_drain_respects_a_disruption_budget_and_names_it():
    guarded = indexed_job('guarded', 1, app='guarded')
    budget = {'apiVersion': 'policy/v1', 'kind': 'PodDisruptionBudget', 'metadata': {'name': 'keep-one'},
              'spec': {'minAvailable': 1, 'selector': {'matchLabels': {'app': 'guarded'}}}}
    budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
    with Scene(cluster, volcano_job('train', 16), drain=True) as scene:
        victim = sorted(scene.used())[0]
        pod = guarded['spec']['template']['spec']
        pod['nodeName'], pod['containers'][0]['resources'] = victim, {}
        cluster.submit(guarded)
        cluster.wait_running('guarded', 1)
        cluster.create(budgets, budget)
        wait_for('the budget is counted', lambda: cluster.get(budgets + '/keep-one').get('status', {}).get('currentHealthy') == 1)
        scene.training.tray_dies(victim)
        scene.wait_mitigated()
        said = scene.timeline()
        assert 'default/guarded' in said and 'disruption budget keep-one' in said, said[-2000:]
        assert cluster.running('guarded'), 'it was evicted over its budget'
        assert scene.writes()['create', 'pods/eviction'] == 0, 'an eviction came through: ' + str(scene.writes())
        cluster.api('DELETE', budgets + '/keep-one')
        cluster.remove(guarded)


class RepairShop:
    """The site's service that broken hardware is handed over to: it takes everything and keeps what it was told."""

    def __init__(self, folder):
        shop = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                shop.told.append(json.loads(self.rfile.read(int(self.headers['Content-Length']))))
                shop.signatures.append(self.headers['Broom-Signature'])
                body = b'{"state":"done","outcome":"succeeded","reason":"ticket 4711"}'
                self.send_response(200)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.told, self.signatures = [], []
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        secret = os.path.join(folder, 'webhook.secret')
        with open(secret, 'w', encoding='utf-8') as file:
            file.write('between-broomd-and-the-shop')
        os.chmod(secret, 0o600)
        url = f'http://127.0.0.1:{self.server.server_address[1]}/repairs'
        self.options = ('--set', 'webhook.url=' + url, '--set', 'webhook.secret=' + secret)


def test_a_repaired_tray_comes_back_stage_by_stage_and_is_a_spare_again():
    with tempfile.TemporaryDirectory() as folder:
        shop = RepairShop(folder)
        with Scene(cluster, volcano_job('train', 16), hand_over='to: hardware, uncordon: broom', options=shop.options) as scene:
            victim = sorted(scene.used())[4]
            scene.training.tray_dies(victim)
            scene.wait_phase('repairing')
            told, = [each for each in shop.told if each['verb'] == 'hand_over']
            assert told['nodes'] == [victim] and shop.signatures[0].startswith('v1='), told
            cluster.kill_kubelet(victim)                # the shop switches it off
            wait_for('it is seen down', lambda: not cluster.is_ready(victim), 40)
            never('a tray that is down was taken back', lambda: victim not in cluster.cordoned(), 2)
            cluster.revive_kubelet(victim)
            scene.wait_phase('done', timeout_s=60)
            assert victim not in cluster.cordoned() and not taint(victim, 'broomwagon.io/quarantine')
            said = scene.timeline()
            stages = ('ticket 4711', 'registered', 'ready', 'schedulable', 'in its NVLink domain', 'validated')
            assert [stage for stage in stages if stage not in said] == [], said[-2500:]
        shop.server.shutdown()


def test_a_person_who_uncordons_cancels_the_rest():
    with Scene(cluster, volcano_job('train', 16)) as scene:
        take_spares_away()
        victim = sorted(scene.used())[0]
        scene.training.tray_dies(victim)
        scene.wait_phase('holding')
        cluster.uncordon(victim)
        incident = scene.wait_phase('cancelled')
        said = scene.daemon.broom('incidents', 'show', incident['ref'])[1]
        assert 'bench' in said, 'the field manager that took the cordon off is named: ' + said[-1500:]
        assert not scene.writes()['create', 'commands'] and victim not in cluster.cordoned()


if __name__ == '__main__':
    with Cluster(racks=2, spare_racks=1, spares_per_rack=2, with_jobset=False) as cluster:
        cluster.grant('enforce')
        run([test_a_rack_fault_moves_the_job_to_the_spare_rack_and_nobody_else_gets_it,
             test_a_tray_fault_takes_a_spare_of_the_same_rack, test_without_a_spare_it_holds_and_says_how_many_are_missing,
             test_a_declined_incident_takes_off_its_own_cordons_and_keeps_those_of_people,
             test_a_drain_respects_a_disruption_budget_and_names_it,
             test_a_repaired_tray_comes_back_stage_by_stage_and_is_a_spare_again,
             test_a_person_who_uncordons_cancels_the_rest])
