#!/usr/bin/env python3
"""broomd as a process: its health, its metrics, reload, roles, what it leaves to its children, how it ends and comes back."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from daemon import BROOM, BROOMD, ROOT, Daemon, run, wait_for

SHIPPED = os.path.join(ROOT, 'deploy/policies/nvl72.yaml')
daemon = None


def get_health(path):
    return daemon.request('GET', path, port=daemon.health_port)


def send_lines():
    now = time.time_ns()
    hello = ''.join(f'hello,job=e2e/daemon,rank={rank} host="n{rank // 4}",gpu={rank % 4}i,world=8i,dp=8i {now}\n' for rank in range(8))
    assert daemon.write(hello)[0] == 204


def test_health_says_what_holds():
    assert get_health('/livez')[0] == 200
    code, text = get_health('/readyz?verbose')
    assert code == 200 and 'database' in text and 'lease' in text, text
    assert get_health('/nothing')[0] == 404


def test_metrics_are_what_prometheus_takes():
    send_lines()
    code, text = get_health('/metrics')
    assert code == 200 and 'broom_samples_total{measurement="hello"} 8' in text, text[:2000]
    assert 'broom_lease_held 1' in text and 'broom_database_up 1' in text, text[:2000]
    if shutil.which('promtool'):
        done = subprocess.run(['promtool', 'check', 'metrics'], input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_bad_reload_keeps_the_last_good_configuration():
    daemon.write_config('log:\n  level: loud\nlisten:\n  apy: 127.0.0.1:1\n')
    seen = daemon.log().count('event=config_refused')
    daemon.process.send_signal(signal.SIGHUP)
    wait_for('the refusal is logged', lambda: daemon.log().count('event=config_refused') > seen)
    line = [line for line in daemon.log().splitlines() if 'event=config_refused' in line][-1]
    assert 'broomd.yaml:2:' in line and 'broomd.yaml:4:3' in line and "did you mean 'listen.api'" in line, line
    assert daemon.is_ready()
    daemon.write_config('log:\n  level: debug\nlimits:\n  jobs: 7\n')
    daemon.process.send_signal(signal.SIGHUP)
    wait_for('the good one is taken', lambda: 'event=config_reloaded' in daemon.log())
    assert 'limits.jobs' in daemon.log().split('event=config_needs_restart')[1].splitlines()[0]
    assert daemon.get('/api/v1/status')['mode'] == 'observe'
    daemon.write_config('mode: approve\nmood: bad\n')
    daemon.process.send_signal(signal.SIGHUP)
    wait_for('the refusal is logged', lambda: daemon.log().count('event=config_refused') > seen + 1)
    assert daemon.get('/api/v1/status')['mode'] == 'observe', 'half of a bad file was taken'
    daemon.write_config('mode: approve\n')
    daemon.process.send_signal(signal.SIGHUP)
    wait_for('the new mode holds', lambda: daemon.get('/api/v1/status')['mode'] == 'approve')


def test_a_check_of_the_configuration_says_everything_at_once():
    bad = os.path.join(daemon.folder, 'bad.yaml')
    with open(bad, 'w', encoding='utf-8') as file:
        file.write('mode: enforced\nlisten:\n  api: 1.2.3.4.5\nlog: {level: loud}\nlimit: 1\n')
    done = subprocess.run([BROOMD, '--check-config', '--config', bad], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 3, (done.returncode, done.stdout, done.stderr)
    for place in ('bad.yaml:1:7: ', 'bad.yaml:3:8: ', 'bad.yaml:4:14: ', 'bad.yaml:5:1: '):
        assert place in done.stdout, (place, done.stdout)
    done = subprocess.run([BROOMD, '--check-config', '--policy', bad], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 3 and 'bad.yaml:1:7: ' in done.stdout, 'the policies are part of it'


def test_a_bad_policy_keeps_the_last_good_one():
    before = json.dumps(daemon.get('/api/v1/status'), sort_keys=True)
    assert 'nvl72-default' in before, before
    with open(policy, 'w', encoding='utf-8') as file:
        file.write('apiVersion: broomwagon.io/v1\nkind: Nothing\n')
    daemon.process.send_signal(signal.SIGHUP)
    wait_for('the refusal is logged', lambda: 'event=policies_refused' in daemon.log())
    assert 'nvl72-default' in json.dumps(daemon.get('/api/v1/status')), 'the good policy is gone'
    shutil.copy(SHIPPED, policy)
    loaded = daemon.log().count('event=policies_loaded')
    daemon.process.send_signal(signal.SIGHUP)
    wait_for('the mended one is taken', lambda: daemon.log().count('event=policies_loaded') > loaded)


def test_a_second_broomd_on_the_same_data_is_refused():
    command = daemon.command()
    for option in ('listen.api', 'listen.health'):
        command = [f'{option}=127.0.0.1:0' if word.startswith(option) else word for word in command]
    command = [word if word != daemon.folder + '/run' else daemon.folder + '/run2' for word in command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode != 0 and 'not_started' in done.stderr + done.stdout, (done.returncode, done.stderr)
    assert daemon.is_ready()


def listening_inodes(pid):
    """Inodes of the listening sockets in the network namespace of a process: TCP in state 0A, Unix ones with the flag ACCEPTCON."""
    found = set()
    for name, inode_at, is_listening in (('tcp', 9, lambda row: row[3] == '0A'), ('unix', 6, lambda row: row[3] == '00010000')):
        with open(f'/proc/{pid}/net/{name}', encoding='utf-8') as file:
            rows = [line.split() for line in file.readlines()[1:]]
        found |= {row[inode_at] for row in rows if is_listening(row)}
    return found


def test_its_listeners_close_on_exec():
    pid, seen = daemon.process.pid, 0
    listening = listening_inodes(pid)
    for name in os.listdir(f'/proc/{pid}/fdinfo'):
        inode = re.fullmatch(r'socket:\[(\d+)\]', os.readlink(f'/proc/{pid}/fd/{name}'))
        if inode is None or inode.group(1) not in listening:
            continue
        with open(f'/proc/{pid}/fdinfo/{name}', encoding='utf-8') as file:
            flags = int(re.search(r'^flags:\s*([0-7]+)', file.read(), re.MULTILINE).group(1), 8)
        assert flags & os.O_CLOEXEC, (name, oct(flags))
        seen += 1
    assert seen == 3, f'{seen} listeners: API, health and the Unix socket were expected'


def test_children_do_not_inherit_the_listeners():
    def sockets(pid):
        found = set()
        for name in os.listdir(f'/proc/{pid}/fd'):
            try:
                target = os.readlink(f'/proc/{pid}/fd/{name}')
            except OSError:
                continue
            if target.startswith('socket:'):
                found.add(target)
        return found
    own, inherited = sockets(daemon.process.pid), sockets(daemon.postgres_pid())
    assert own and not own & inherited, own & inherited


def test_roles_are_what_the_socket_proves():
    code, out, err = daemon.broom('pause', '--reason', 'tests')
    assert code == 0, err
    assert 'PAUSED' in daemon.broom('status', check=0)[1]
    if os.getuid() == 0:
        assert daemon.get('/api/v1/status')['paused']['by'] == 'root', daemon.get('/api/v1/status')
    for path in ('/api/v1/resume', '/api/v1/incidents/INC-1/approve', '/api/v1/incidents/INC-1/abort', '/api/v1/breaker/close'):
        code, text = daemon.request('POST', path, '{"text":"from loopback"}')
        assert code in (401, 403), (path, code, text)
    assert daemon.get('/api/v1/status')['paused'], 'somebody unproven resumed it'
    daemon.broom('resume', '--reason', 'tests', check=0)
    if os.getuid() == 0:
        # a site that lets everybody look opens the folder and the socket
        os.chmod(daemon.folder + '/run', 0o755)
        os.chmod(daemon.folder + '/run/broomd.sock', 0o666)
        command = ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups', BROOM, 'pause', '--reason', 'no',
                   '--server', f'unix:{daemon.folder}/run/broomd.sock']
        copied = os.path.join(daemon.folder, 'broom')
        shutil.copy(BROOM, copied)
        os.chmod(copied, 0o755)
        command[command.index(BROOM)] = copied
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 5, (done.returncode, done.stderr)


def test_off_loopback_without_identity_enforce_does_not_start():
    folder = os.path.join(daemon.folder, 'open')
    os.mkdir(folder)
    done = subprocess.run([BROOMD, '--data-dir', folder, '--run-dir', folder, '--mode', 'enforce', '--policy',
                           SHIPPED, '--set', 'listen.api=0.0.0.0:0', '--set',
                           'listen.health='], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode != 0 and 'enforce' in done.stderr + done.stdout, (done.returncode, done.stderr)


def test_requests_that_smuggle_are_refused():
    with socket.create_connection(('127.0.0.1', daemon.port), timeout=10) as raw:
        raw.sendall(b'POST /write HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx')
        assert b' 400 ' in raw.recv(4096).split(b'\r\n')[0]
    with socket.create_connection(('127.0.0.1', daemon.port), timeout=10) as raw:
        raw.sendall(b'GET /api/v1/status HTTP/1.1\r\n\r\n')
        assert b' 400 ' in raw.recv(4096).split(b'\r\n')[0]


def test_a_token_may_what_its_line_says():
    tokens = {'reader': 'reader-0123456789', 'operator': 'operator-0123456789', 'bound': 'bound-to-a-job-0123456789'}
    path = os.path.join(daemon.folder, 'tokens')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f"{tokens['reader']} grafana reader\n{tokens['operator']} alice operator\n"
                   f"{tokens['bound']} trainer job:e2e/own\n")
    os.chmod(path, 0o600)

    def ask(who, method, path, body=None):
        return daemon.request(method, path, body, {'Authorization': 'Bearer ' + tokens.get(who, who)})[0]

    daemon.write_config(f'auth:\n  tokens: {path}\n')
    seen = daemon.log().count('event=config_reloaded')
    daemon.process.send_signal(signal.SIGHUP)
    wait_for('the tokens are read', lambda: daemon.log().count('event=config_reloaded') > seen)
    now = time.time_ns()
    line = 'hello,job=%s,rank=0 host="n0",gpu=0i,world=1i ' + str(now)
    assert ask('reader', 'GET', '/api/v1/status') == 200
    assert ask('reader', 'POST', '/api/v1/pause', '{"text":"no"}') == 403
    assert ask('reader', 'POST', '/write', line % 'e2e/own') == 403
    assert ask('bound', 'POST', '/write', line % 'e2e/own') == 204
    assert ask('bound', 'POST', '/write', line % 'e2e/other') == 400
    assert ask('bound', 'POST', '/api/v1/pause', '{"text":"no"}') == 403
    assert ask('wrong-token-0123456789', 'GET', '/api/v1/status') == 401
    assert 'e2e/other' not in json.dumps(daemon.get('/api/v1/jobs'))
    assert ask('operator', 'POST', '/api/v1/pause', '{"text":"by token","actor":"mallory"}') == 200
    assert daemon.get('/api/v1/status')['paused']['by'] == 'alice'
    assert ask('operator', 'POST', '/api/v1/resume', '{"text":"by token"}') == 200
    wait_for('the record names her', lambda: 'alice' in daemon.psql("SELECT DISTINCT record->>'actor' FROM broom.control"))
    assert not any(token in daemon.log() for token in tokens.values()), 'a token is in the log'


def test_a_slow_client_is_cut_and_others_are_served():
    with socket.create_connection(('127.0.0.1', daemon.port), timeout=30) as slow:
        slow.sendall(b'POST /write HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ')
        began = time.monotonic()
        assert daemon.get('/api/v1/status')
        said = slow.recv(4096)
        assert said == b'' or b' 408 ' in said, said
        assert time.monotonic() - began < 20


def test_a_clock_that_cannot_be_read_is_named():
    folder = os.path.join(daemon.folder, 'clock')
    os.mkdir(folder)
    for path in [folder + '/none', SHIPPED]:
        done = subprocess.run([BROOMD, '--data-dir', folder, '--run-dir', folder, '--policy', SHIPPED, '--time-file', path],
                              capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 1 and path in done.stderr, (done.returncode, done.stderr)


def test_systemd_is_told_when_it_is_ready_and_when_it_stops():
    with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox:
        inbox.bind(place + '/notify')
        inbox.settimeout(30)
        os.environ['NOTIFY_SOCKET'] = place + '/notify'
        try:
            other = Daemon()
        finally:
            del os.environ['NOTIFY_SOCKET']
        with other:
            await_message(inbox, 'READY=1')
            other.process.send_signal(signal.SIGTERM)
            await_message(inbox, 'STOPPING=1')


def await_message(inbox, wanted):
    end = time.monotonic() + 30
    while wanted not in inbox.recv(4096).decode().splitlines():
        assert time.monotonic() < end, f'systemd was never told {wanted}'


def test_a_newer_schema_is_refused():
    with Daemon() as other:
        other.psql("INSERT INTO broom.schema_version (version, name, checksum) SELECT 9999, 'future', checksum "
                   'FROM broom.schema_version LIMIT 1')
        other.kill()
        other.launch()
        wait_for('it says why', lambda: 'schema is at version 9999' in other.request('GET', '/readyz?verbose', port=other.health_port)[1])
        assert other.request('GET', '/readyz', port=other.health_port)[0] == 503
        assert other.request('GET', '/livez', port=other.health_port)[0] == 200
        assert 'event=schema_refused' in other.log()


def test_state_outlives_a_kill():
    daemon.broom('pause', '--reason', 'to be remembered', check=0)
    postgres = daemon.postgres_pid()
    daemon.kill()
    daemon.start()
    assert 'PAUSED' in daemon.broom('status', check=0)[1]
    assert daemon.postgres_pid() != postgres, 'a server of a dead broomd was taken over'
    daemon.broom('resume', '--reason', 'remembered', check=0)


def test_sigterm_ends_in_bounded_time_with_its_database_and_open_connections():
    idle = http.client.HTTPConnection('127.0.0.1', daemon.port)
    idle.request('GET', '/api/v1/status')
    idle.getresponse().read()
    half = socket.create_connection(('127.0.0.1', daemon.port))
    half.sendall(b'POST /write HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nstep')
    postgres = daemon.postgres_pid()
    code, seconds = daemon.stop()
    assert code == 0 and seconds < 20, (code, seconds)
    assert not os.path.exists(f'/proc/{postgres}'), 'its PostgreSQL is left behind'
    assert 'event=stopped code=0' in daemon.log()
    idle.close()
    half.close()


with tempfile.TemporaryDirectory() as folder:
    policy = shutil.copy(SHIPPED, os.path.join(folder, 'policy.yaml'))
    with Daemon(policy=policy) as daemon:
        run([test_health_says_what_holds, test_metrics_are_what_prometheus_takes,
             test_a_bad_reload_keeps_the_last_good_configuration, test_a_check_of_the_configuration_says_everything_at_once,
             test_a_bad_policy_keeps_the_last_good_one, test_a_second_broomd_on_the_same_data_is_refused,
             test_its_listeners_close_on_exec, test_children_do_not_inherit_the_listeners,
             test_roles_are_what_the_socket_proves, test_a_token_may_what_its_line_says,
             test_off_loopback_without_identity_enforce_does_not_start, test_a_clock_that_cannot_be_read_is_named,
             test_requests_that_smuggle_are_refused, test_a_slow_client_is_cut_and_others_are_served,
             test_systemd_is_told_when_it_is_ready_and_when_it_stops, test_a_newer_schema_is_refused, test_state_outlives_a_kill,
             test_sigterm_ends_in_bounded_time_with_its_database_and_open_connections])
