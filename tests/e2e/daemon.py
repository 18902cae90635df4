"""A real broomd for end-to-end tests: temporary folders, free ports, its own PostgreSQL, ended by its process id."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BROOM = os.environ.get('BROOM', os.path.join(ROOT, 'build/broom'))
BROOMD = os.environ.get('BROOMD', os.path.join(ROOT, 'build/broomd'))


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def wait_for(what, condition, timeout_s=30.0, every_s=0.1):
    """The value of condition() once it is true; what names it when it never is."""
    end = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f'not within {timeout_s:.0f} s: {what}')
        time.sleep(every_s)


class Daemon:
    def __init__(self, *options, policy=None, folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix='broom-e2e-')
        os.chmod(self.folder, 0o755)     # PostgreSQL runs under an account of its own when this is root
        self.port, self.health_port = free_port(), free_port()
        self.log_path = os.path.join(self.folder, 'broomd.log')
        self.config_path = os.path.join(self.folder, 'broomd.yaml')
        self.options = list(options) + ['--policy', policy or os.path.join(ROOT, 'deploy/policies/nvl72.yaml')]
        if not os.path.exists(self.config_path):
            self.write_config('')
        self.process = None
        self.start()

    def write_config(self, text):
        with open(self.config_path, 'w', encoding='utf-8') as file:
            file.write(text)

    def command(self):
        return [BROOMD, '--config', self.config_path, '--data-dir', self.folder + '/data', '--run-dir', self.folder + '/run',
                '--set', f'listen.api=127.0.0.1:{self.port}', '--set', f'listen.health=127.0.0.1:{self.health_port}',
                *self.options]

    def launch(self):
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def start(self):
        self.launch()
        wait_for('broomd is ready', self.is_ready, 60)

    def is_ready(self):
        assert self.process.poll() is None, 'broomd ended: ' + self.log()[-2000:]
        return self.request('GET', '/readyz', port=self.health_port)[0] == 200

    def log(self):
        with open(self.log_path, encoding='utf-8', errors='replace') as file:
            return file.read()

    def request(self, method, path, body=None, headers=None, port=None):
        """(code, text); (0, '') when nobody answers."""
        connection = http.client.HTTPConnection('127.0.0.1', port or self.port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors='replace')
        except (OSError, http.client.HTTPException):
            return 0, ''
        finally:
            connection.close()

    def get(self, path):
        code, text = self.request('GET', path)
        assert code == 200, f'{path}: {code} {text[:200]}'
        return json.loads(text)

    def write(self, lines, **headers):
        return self.request('POST', '/write', lines, headers)

    def incidents(self):
        return self.get('/api/v1/incidents')['incidents']

    def broom(self, *arguments, check=None):
        """(exit code, stdout, stderr) of the command line over the Unix socket."""
        done = subprocess.run([BROOM, *arguments, '--server', f'unix:{self.folder}/run/broomd.sock'],
                              capture_output=True, text=True, timeout=60)
        if check is not None:
            assert done.returncode == check, f'broom {arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}'
        return done.returncode, done.stdout, done.stderr

    def postgres_pid(self):
        with open(self.folder + '/data/postgres/data/postmaster.pid', encoding='utf-8') as file:
            return int(file.readline())

    def psql(self, sql):
        """Rows as lines, asked of the private server as its owner."""
        command = ['psql', '-X', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-h', self.folder + '/data/postgres/socket',
                   '-d', 'postgres', '-c', sql]
        if os.getuid() == 0:
            command = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] + command
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """The exit code after SIGTERM and the seconds that it took."""
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60), time.monotonic() - began

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None and kind is not SystemExit:
            print('---- broomd said', self.log()[-4000:], sep='\n')
        self.close()


def skip(reason):
    print('skipped:', reason)
    sys.exit(77)


def run(tests):
    """Runs functions by name; every one that fails is told. Exit 1 when any did."""
    failed = 0
    for test in tests:
        began = time.monotonic()
        try:
            test()
            print(f'passed {test.__name__} ({time.monotonic() - began:.1f} s)', flush=True)
        except Exception as error:  # a test program reports, whatever happened
            failed += 1
            print(f'FAILED {test.__name__}: {type(error).__name__}: {error}', flush=True)
    sys.exit(1 if failed else 0)
