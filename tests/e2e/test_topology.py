#!/usr/bin/env python3
"""The site's topology file in a real broomd: racks of jobs, the record of what changed, launch help, and a reload."""
import os
import signal
import tempfile

from daemon import Daemon, run, wait_for

FILE = """racks:
  - rack: rk-1
    trays: [gb-1, gb-2, gb-3]
  - rack: rk-2
    trays: [gb-4, {node: gb-5, tray: 2, rails: 4}]
"""


def hello(rank, node):
    return (f'hello,job=default/x,rank={rank} host="{node}",gpu={rank % 4}i,rail={rank % 4}i,world=8i,tp=4i,pp=2i,'
            f'dp=1i,attempt=0i\n')


def test_jobs_that_only_say_hello_stand_in_the_racks_of_the_file():
    lines = ''.join(hello(rank, 'gb-1' if rank < 4 else 'gb-4') for rank in range(8))
    assert daemon.write(lines)[0] == 204
    job = daemon.get('/api/v1/jobs/default%2Fx')
    racks = {tray['node']: rack['rack'] for rack in job['rack_view'] for tray in rack['trays']}
    assert racks == {'gb-1': 'rk-1', 'gb-2': 'rk-1', 'gb-3': 'rk-1', 'gb-4': 'rk-2', 'gb-5': 'rk-2'}, racks


def test_the_inventory_is_told_and_recorded():
    code, out, err = daemon.broom('topology')
    assert code == 0 and 'rk-1' in out and 'gb-4, gb-5' in out, (code, out, err)
    assert '2' in daemon.broom('topology', 'gb-5', check=0)[1]
    rows = wait_for('five nodes are recorded', lambda: [row for row in daemon.psql(
        "SELECT node || ' ' || rack FROM broom_api.topology WHERE source = 'file' ORDER BY 1").splitlines()
        if len(row) > 0] or None)
    assert rows == ['gb-1 rk-1', 'gb-2 rk-1', 'gb-3 rk-1', 'gb-4 rk-2', 'gb-5 rk-2'], rows


def test_a_layout_keeps_the_replica_in_one_rack():
    code, out, err = daemon.broom('layout', 'default/x', '--nodes', 'gb-1,gb-2', '--format', 'hostfile')
    assert (code, out) == (0, 'gb-1 slots=4\ngb-2 slots=4\n'), (code, out, err)
    code, out, err = daemon.broom('layout', 'default/x')
    assert code == 0 and 'replicas in several NVLink domains: 1' in err, (code, out, err)
    assert daemon.broom('layout', 'default/x', '--nodes', 'gb-1')[0] == 7
    assert daemon.broom('layout', 'default/y')[0] == 4
    code, text = daemon.request('GET', '/api/v1/jobs/default%2Fx/layout?format=slurm&nodes=gb-2,gb-3')
    assert (code, text) == (200, 'gb-2\n' * 4 + 'gb-3\n' * 4), (code, text)


def test_a_reload_takes_a_good_file_and_keeps_the_last_one_for_a_bad():
    with open(path, 'w', encoding='utf-8') as file:
        file.write('racks:\n  - {rack: rk-1, trays: [gb-1, gb-1]}\n')
    daemon.process.send_signal(signal.SIGHUP)
    wait_for('the mistake is told', lambda: 'topology_refused' in daemon.log() and ":2:32: error: 'gb-1'" in daemon.log())
    assert 'rk-2' in daemon.broom('topology', check=0)[1]
    with open(path, 'w', encoding='utf-8') as file:
        file.write('racks:\n  - {rack: rk-9, trays: [gb-1, gb-2, gb-3]}\n  - {rack: rk-2, trays: [gb-4]}\n')
    daemon.process.send_signal(signal.SIGHUP)
    wait_for('the new rack is there', lambda: 'rk-9' in daemon.broom('topology')[1])
    code, out, err = daemon.broom('topology', '--nodes')
    assert code == 3 and 'gb-5: no source names the rack' in err, (code, out, err)
    history = wait_for('the move is recorded', lambda: daemon.psql(
        "SELECT string_agg(rack, ' ' ORDER BY at) FROM broom_api.topology_history WHERE node = 'gb-1' AND source = 'file'")
        == 'rk-1 rk-9')
    assert history


handle, path = tempfile.mkstemp(prefix='broom-topology-', suffix='.yaml')
with os.fdopen(handle, 'w', encoding='utf-8') as first:
    first.write(FILE)
try:
    with Daemon('--set', f'topology.file={path}') as daemon:
        run([test_jobs_that_only_say_hello_stand_in_the_racks_of_the_file, test_the_inventory_is_told_and_recorded,
             test_a_layout_keeps_the_replica_in_one_rack,
             test_a_reload_takes_a_good_file_and_keeps_the_last_one_for_a_bad])
finally:
    os.unlink(path)
