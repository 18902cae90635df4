"""A private Slurm cluster on loopback: real munged, slurmctld, one real slurmd a node, slurmrestd. All are children of this process,
end by their pids, and keep their files in one temporary folder. Needs root, and Debian's slurmctld, slurmd, slurm-client,
slurmrestd, slurm-wlm-jwt-plugin and munge (22.05)."""
import base64
import hashlib
import hmac
import json
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from daemon import skip, wait_for

# The daemons look at their own names: under Debian's slurmctld-wlm they leave out authentication and GRES without a word.
SLURMCTLD, SLURMD, SLURMRESTD, MUNGED = '/usr/sbin/slurmctld', '/usr/sbin/slurmd', '/usr/sbin/slurmrestd', '/usr/sbin/munged'
CRED_EXPIRE_S = 5      # the least that Slurm takes; a requeued job may begin a second later


LIVE, PORTS, LOCK = [], set(), threading.Lock()


def end_all(*_):
    """A test that is stopped ends its clusters, whichever thread they belong to."""
    for cluster in list(LIVE):
        cluster.close()
    os._exit(143)


def need_slurm():
    signal.signal(signal.SIGTERM, end_all)
    lacking = [p for p in (SLURMCTLD, SLURMD, SLURMRESTD, MUNGED) if not os.path.exists(p)]
    if lacking:
        skip(f'not installed: {", ".join(lacking)} (deploy/install-deps --tests)')
    if os.getuid() != 0:
        skip('slurmd and munged take their accounts as root only')


def free_ports(count):
    """The first of `count` consecutive ports that nobody listens on, below those that the kernel hands out."""
    for _ in range(200):
        first = random.randrange(20000, 32000 - count)
        with LOCK:
            if not PORTS.isdisjoint(range(first, first + count)):
                continue
            PORTS.update(range(first, first + count))
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(('127.0.0.1', port))
            return first
        except OSError:
            continue
    raise AssertionError('no free ports')


class Cluster:
    """racks x per_rack nodes r1n01.., four GPUs each; a leaf switch and a feature a rack; the last `spares` of each rack, and
    all of the last `spare_racks` racks, have the feature spare."""

    def __init__(self, racks=2, per_rack=18, spares=2, spare_racks=0, rest=True):
        self.base = tempfile.mkdtemp(prefix='broom-slurm-')
        os.chmod(self.base, 0o755)
        self.racks, self.per_rack, self.spare_count, self.spare_racks = racks, per_rack, spares, spare_racks
        self.nodes = [f'r{r}n{n:02}' for r in range(1, racks + 1) for n in range(1, per_rack + 1)]
        self.conf = f'{self.base}/slurm.conf'
        self.port = free_ports(len(self.nodes) + 3)
        self.rest_port = self.port + 1
        self.rest_url = f'http://127.0.0.1:{self.rest_port}'
        self.processes, self.slurmd, self.slurmctld = [], {}, None
        LIVE.append(self)
        try:
            self.write_files()
            self.start(rest)
        except BaseException:
            self.close()
            raise

    # --- files ---

    def path(self, *parts):
        return os.path.join(self.base, *parts)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), 'wb') as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(self.path(name), mode)

    def write_files(self):
        for folder in ('state', 'spool', 'log', 'dev', 'munge', 'jobs', *(f'spool/{node}' for node in self.nodes)):
            os.makedirs(self.path(folder), mode=0o755)
        account = pwd.getpwnam('munge')
        self.write('munge/key', os.urandom(128), 0o400)
        self.write('jwt.key', os.urandom(32), 0o600)
        for name in ('munge', 'munge/key'):
            os.chown(self.path(name), account.pw_uid, account.pw_gid)
        for i in range(4):
            os.mknod(self.path(f'dev/nvidia{i}'), 0o20666, os.makedev(1, 3))   # stand for GPUs: /dev/null
        self.write('cgroup.conf', 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n')
        self.write('slurm.conf', self.slurm_conf())
        self.write('topology.conf', self.topology_conf())
        names = ','.join(f'r{r}n[01-{self.per_rack:02}]' for r in range(1, self.racks + 1))
        self.write('gres.conf', f'AutoDetect=off\nNodeName={names} Name=gpu Type=gb300 File={self.base}/dev/nvidia[0-3]\n')

    def topology_conf(self):
        leaves = [f'SwitchName=rack{r} Nodes=r{r}n[01-{self.per_rack:02}]' for r in range(1, self.racks + 1)]
        return '\n'.join([*leaves, f'SwitchName=spine Switches=rack[1-{self.racks}]', ''])

    def node_lines(self):
        host, port, lines = socket.gethostname().split('.')[0], self.port + 3, []
        for r in range(1, self.racks + 1):
            plain = 0 if r > self.racks - self.spare_racks else self.per_rack - self.spare_count
            for first, last, more in ((1, plain, ''), (plain + 1, self.per_rack, ',spare')):
                if first > last:
                    continue
                ports = f'[{port}-{port + last - first}]' if last > first else str(port)
                names = f'[{first:02}-{last:02}]' if last > first else f'{first:02}'
                lines.append(f'NodeName=r{r}n{names} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports} CPUs=4 RealMemory=1000 '
                             f'Gres=gpu:gb300:4 Feature=rack{r},nvl72{more} Weight={100 if more else 1} State=UNKNOWN')
                port += last - first + 1
        return lines

    def slurm_conf(self):
        host = socket.gethostname().split('.')[0]
        return '\n'.join([
            'ClusterName=lab', f'SlurmctldHost={host}(127.0.0.1)', 'SlurmUser=root', 'SlurmdUser=root',
            f'SlurmctldPort={self.port}', f'SlurmdPort={self.port + 2}', 'AuthType=auth/munge', 'CredType=cred/munge',
            f'AuthInfo=socket={self.base}/munge/socket,cred_expire={CRED_EXPIRE_S}',
            'AuthAltTypes=auth/jwt', f'AuthAltParameters=jwt_key={self.base}/jwt.key',
            'CommunicationParameters=NoCtldInAddrAny,NoInAddrAny',
            f'StateSaveLocation={self.base}/state', f'SlurmdSpoolDir={self.base}/spool/%n',
            f'SlurmctldPidFile={self.base}/slurmctld.pid', f'SlurmdPidFile={self.base}/slurmd-%n.pid',
            f'SlurmctldLogFile={self.base}/log/slurmctld.log', f'SlurmdLogFile={self.base}/log/slurmd-%n.log',
            'SlurmctldDebug=verbose', 'SlurmdDebug=info', 'DebugFlags=NO_CONF_HASH', 'MailProg=/bin/true',
            'ProctrackType=proctrack/linuxproc', 'TaskPlugin=task/none', 'JobAcctGatherType=jobacct_gather/none',
            'AccountingStorageType=accounting_storage/none', 'MpiDefault=none', 'SwitchType=switch/none', 'GresTypes=gpu',
            'SlurmdParameters=config_overrides', 'SelectType=select/cons_tres', 'SelectTypeParameters=CR_Core',
            'TopologyPlugin=topology/tree', 'SchedulerType=sched/backfill',
            'SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2,sched_min_interval=0',
            'JobRequeue=1', 'ReturnToService=2', 'SlurmdTimeout=10', 'SlurmctldTimeout=30', 'InactiveLimit=0', 'KillWait=2',
            'CompleteWait=0', 'MinJobAge=600', 'TreeWidth=64', *self.node_lines(),
            'PartitionName=train Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO', ''])

    # --- processes ---

    def environment(self, **more):
        clean = {k: v for k, v in os.environ.items() if not k.startswith('SLURM')}
        return dict(clean, SLURM_CONF=self.conf, **more)

    def launch(self, name, *command, **options):
        with open(self.path('log', name + '.out'), 'ab') as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                                       env=options.pop('env', None) or self.environment(), **options)
        self.processes.append(process)
        return process

    def start(self, rest):
        account = pwd.getpwnam('munge')
        munge = self.path('munge')
        self.launch('munged', MUNGED, '--foreground', '--key-file', f'{munge}/key', '--socket', f'{munge}/socket', '--pid-file',
                    f'{munge}/pid', '--log-file', f'{munge}/log', '--seed-file', f'{munge}/seed', '--num-threads', '2',
                    user=account.pw_uid, group=account.pw_gid, extra_groups=[])
        wait_for('munged listens', lambda: os.path.exists(f'{munge}/socket'))
        self.start_slurmctld('-c')
        for node in self.nodes:
            self.start_slurmd(node)
        self.wait_idle()
        if rest:
            nobody = pwd.getpwnam('nobody')
            self.slurmrestd = self.launch('slurmrestd', SLURMRESTD, '-a', 'rest_auth/jwt', '-s', 'openapi/v0.0.38', f'127.0.0.1:{self.rest_port}',
                                          user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[],
                                          env=self.environment(SLURM_JWT='daemon', SLURMRESTD_SECURITY='disable_unshare_sysv,disable_unshare_files'))
            wait_for('slurmrestd listens', lambda: self.rest('/ping')[0] == 200)

    def start_slurmctld(self, *more):
        self.slurmctld = self.launch('slurmctld', SLURMCTLD, '-D', '-i', *more)
        self.booted = time.monotonic()
        wait_for('slurmctld is up', lambda: 'is UP' in self.try_run('scontrol', 'ping')[1])

    def kill_slurmctld(self):
        self.slurmctld.kill()
        self.slurmctld.wait()

    def start_slurmd(self, node):
        self.slurmd[node] = self.launch('slurmd-' + node, SLURMD, '-D', '-N', node)

    def kill_slurmd(self, node):
        self.slurmd[node].kill()
        self.slurmd[node].wait()

    def wait_idle(self, timeout_s=60):
        def idle():
            out = self.try_run('sinfo', '-h', '-N', '-t', 'idle', '-o', '%N')[1].split()
            return len(set(out)) == len(self.nodes)
        wait_for(f'{len(self.nodes)} nodes are idle', idle, timeout_s)

    def close(self):
        if self.slurmctld is not None and self.slurmctld.poll() is None:
            self.try_run('scancel', '-u', 'root', timeout_s=5)
            end = time.monotonic() + 6
            while time.monotonic() < end and self.try_run('squeue', '-h', '-t', 'R,CG,S', timeout_s=5)[1].strip():
                time.sleep(0.1)
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
        end = time.monotonic() + 5
        for process in self.processes:
            try:
                process.wait(max(0.05, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.end_strays()
        if self in LIVE:
            LIVE.remove(self)
        shutil.rmtree(self.base, ignore_errors=True)

    def end_strays(self):
        """Steps outlive their slurmd: those that carry this cluster's own slurm.conf in their environment."""
        mark = f'SLURM_CONF={self.conf}'.encode()
        for entry in os.listdir('/proc'):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                with open(f'/proc/{entry}/environ', 'rb') as file:
                    ours = mark in file.read().split(b'\0')
                if ours:
                    os.kill(int(entry), signal.SIGKILL)
            except OSError:
                continue

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None and kind is not SystemExit:
            print('---- slurmctld said', self.log()[-3000:], sep='\n')
        self.close()

    # --- questions ---

    def try_run(self, *command, timeout_s=20, **more):
        """(exit code, stdout, stderr); 124 after the time-out."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, env=self.environment(**more),
                                  check=False, stdin=subprocess.DEVNULL)
            return done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            return 124, '', 'timed out'

    def run(self, *command, **more):
        code, out, error = self.try_run(*command, **more)
        assert code == 0, f'{" ".join(command)}: exit {code}: {error}{out}'
        return out

    def log(self):
        with open(self.path('log/slurmctld.log'), encoding='utf-8', errors='replace') as file:
            return file.read()

    def count_log(self, pattern):
        return len(re.findall(pattern, self.log()))

    def node(self, name):
        """{'State': 'IDLE+DRAIN', 'Reason': ...} of one node."""
        fields = {}
        for line in self.run('scontrol', 'show', 'node', name).splitlines():
            line = line.strip()
            if line.startswith(('Reason=', 'OS=', 'Comment=', 'Extra=')):
                key, _, value = line.partition('=')
                fields[key] = value
            else:
                fields.update(part.partition('=')[::2] for part in line.split() if '=' in part)
        return fields

    def state(self, name):
        return self.node(name)['State']

    def reason(self, name):
        return self.node(name).get('Reason', '')

    def job(self, job_id):
        fields = {}
        for line in self.run('scontrol', 'show', 'job', str(job_id)).splitlines():
            fields.update(part.partition('=')[::2] for part in line.split() if '=' in part)
        return fields

    def expand(self, hostlist):
        return self.run('scontrol', 'show', 'hostnames', hostlist).split() if hostlist and hostlist != '(null)' else []

    def token(self, user='root', lifespan_s=3600):
        def encode(data):
            return base64.urlsafe_b64encode(data).rstrip(b'=')
        with open(self.path('jwt.key'), 'rb') as file:
            key = file.read()
        claims = {'exp': int(time.time()) + lifespan_s, 'iat': int(time.time()), 'sun': user}
        body = encode(b'{"alg":"HS256","typ":"JWT"}') + b'.' + encode(json.dumps(claims).encode())
        return (body + b'.' + encode(hmac.new(key, body, hashlib.sha256).digest())).decode()

    def rest(self, path, method='GET', body=None):
        import http.client
        connection = http.client.HTTPConnection('127.0.0.1', self.rest_port, timeout=30)
        try:
            connection.request(method, '/slurm/v0.0.38' + path, json.dumps(body) if body is not None else None,
                               {'X-SLURM-USER-NAME': 'root', 'X-SLURM-USER-TOKEN': self.token(), 'Content-Type': 'application/json'})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors='replace')
        except (OSError, http.client.HTTPException):
            return 0, ''
        finally:
            connection.close()

    def submit(self, script, *options):
        """The job id of a batch script."""
        name = self.path('jobs', f'script-{time.monotonic_ns()}.sh')
        with open(name, 'w', encoding='utf-8') as file:
            file.write(script)
        out = self.run('sbatch', '--parsable', f'--output={self.base}/jobs/%j.out', f'--chdir={self.base}/jobs', *options, name)
        return out.strip().split(';')[0]

    def clean(self):
        """Jobs, drains and reservations of the test before are gone."""
        self.run('scancel', '-u', 'root')
        wait_for('no job is left', lambda: not self.run('squeue', '-h').strip())
        for line in self.run('scontrol', '-o', 'show', 'reservation').splitlines():
            if line.startswith('ReservationName='):
                self.run('scontrol', 'delete', line.split()[0])
        drained = self.run('sinfo', '-h', '-N', '-t', 'drain,down', '-o', '%N').split()
        if drained:
            self.try_run('scontrol', 'update', 'NodeName=' + ','.join(sorted(set(drained))), 'State=RESUME')
        self.wait_idle()

    def wait_job(self, job_id, state, timeout_s=60):
        return wait_for(f'job {job_id} is {state}', lambda: self.job(job_id)['JobState'] == state and self.job(job_id), timeout_s)
