# SPDX-License-Identifier: Apache-2.0
"""Step times of a training job for broomd: one file, standard library only, Python 3.8 or newer.

    import broomwagon
    bw = broomwagon.start(job="default/llm-17")      # rank, world and host from the environment
    for step, batch in enumerate(loader):
        with bw.step(step):
            with bw.compute():   loss = forward_backward(batch)
            with bw.allreduce(): sync_gradients()
    bw.finish()

It makes no collective and no device synchronisation, raises nothing into the loop, and waits for nothing: a step is one
tuple in a bounded queue that drops its oldest, and a background thread sends it. That thread also says every few seconds
in which phase the rank is, so that a rank that hangs inside a collective can be told from one that never entered it.

Phases are exclusive: time in an inner one is not time of the outer one. Time between two steps is data_ms.

With torch's DistributedDataParallel, whose all-reduce runs inside backward():

    bw.watch(ddp_model)                              # or hook = bw.comm_hook(your_own_hook)
    with bw.backward(): loss.backward()

Environment: BROOM_URL (http://, https:// or unix:///path; default http://127.0.0.1:7430), BROOM_JOB, BROOM_NODE,
BROOM_TOKEN or BROOM_TOKEN_FILE, BROOM_CA_FILE, BROOM_DISABLE=1 (off). RANK, WORLD_SIZE, LOCAL_RANK and their Slurm and
OpenMPI kin tell who this is.
"""
import atexit
import collections
import http.client
import os
import random
import socket
import ssl
import sys
import threading
import time
import urllib.parse

__all__ = ['start', 'Monitor']

QUEUE_ITEMS = 4096          # steps and marks; about 1 MB at most
BATCH_ITEMS = 256
SEND_EVERY_S = 0.5
BEAT_EVERY_S = 5.0
TIMEOUT_S = 5.0
BACKOFF_FIRST_S, BACKOFF_MAX_S = 0.5, 30.0
LAST_FLUSH_S = 1.0
PENDING_EVENTS = 64

# The order of PHASES is the order of Monitor._spent.
PHASES = ('init', 'between', 'compute', 'allreduce', 'data', 'checkpoint', 'eval', 'tp', 'ep', 'recv', 'other')
INIT, BETWEEN, COMPUTE, ALLREDUCE, DATA, CHECKPOINT, EVAL, TP, EP, RECV, OTHER = range(len(PHASES))
BEAT_PHASE = {'between': 'data', 'tp': 'allreduce', 'ep': 'allreduce', 'recv': 'compute', 'other': 'compute'}
FIELD_OF = {COMPUTE: 'compute_ms', ALLREDUCE: 'allreduce_ms', DATA: 'data_ms', TP: 'tp_ms', EP: 'ep_ms', RECV: 'recv_ms'}
REPORTED = ('loss', 'grad_norm', 'tokens', 'sm', 'mem')


def start(job=None, rank=None, world=None, host=None, gpu=None, url=None, **sizes):
    """A Monitor for this rank; one that does nothing when BROOM_DISABLE is set or what it needs to know is missing.

    sizes: tp, pp, dp, ep, cp, rail, attempt, as broomd's hello takes them."""
    monitor = Monitor()
    try:
        if os.environ.get('BROOM_DISABLE', '') in ('', '0'):
            monitor._start(_Identity(job, rank, world, host, gpu, sizes), url or os.environ.get('BROOM_URL'))
    except Exception as error:  # the job goes on without us, whatever it was
        _warn('off: %s' % error)
    return monitor


def _warn(text):
    try:
        sys.stderr.write('broomwagon: %s\n' % text)
    except Exception:
        pass


def _env(*names):
    for name in names:
        value = os.environ.get(name)
        if value:
            return value
    return None


def _whole(given, *names):
    value = given if given is not None else _env(*names)
    return None if value is None else int(value)


def _tag(text):
    return str(text).replace('\\', '\\\\').replace(',', '\\,').replace('=', '\\=').replace(' ', '\\ ').replace('\n', '')


class _Identity:
    """Who this rank is; its lines begin with it."""

    def __init__(self, job, rank, world, host, gpu, sizes):
        self.job = job or _env('BROOM_JOB')
        self.rank = _whole(rank, 'RANK', 'SLURM_PROCID', 'OMPI_COMM_WORLD_RANK')
        self.world = _whole(world, 'WORLD_SIZE', 'SLURM_NTASKS', 'OMPI_COMM_WORLD_SIZE')
        self.host = host or _env('BROOM_NODE', 'NODE_NAME', 'SLURMD_NODENAME') or socket.gethostname()
        self.gpu = _whole(gpu, 'LOCAL_RANK', 'SLURM_LOCALID', 'OMPI_COMM_WORLD_LOCAL_RANK')
        if not self.job or self.rank is None or self.world is None:
            raise ValueError('job, rank and world are not all known: give them, or set BROOM_JOB, RANK and WORLD_SIZE')
        self.sizes = {name: int(value) for name, value in sizes.items() if value is not None}
        attempt = _env('BROOM_ATTEMPT', 'TORCHELASTIC_RESTART_COUNT', 'SLURM_RESTART_COUNT')
        if attempt is not None:
            self.sizes.setdefault('attempt', int(attempt))
        self.tags = 'job=%s,rank=%d' % (_tag(self.job), self.rank)
        self.job_tag = 'job=%s' % _tag(self.job)

    def hello(self):
        fields = ['host="%s"' % self.host.replace('\\', '\\\\').replace('"', '\\"'), 'world=%di' % self.world]
        if self.gpu is not None:
            fields.append('gpu=%di' % self.gpu)
        fields += ['%s=%di' % size for size in sorted(self.sizes.items())]
        return 'hello,%s %s %d' % (self.tags, ','.join(fields), time.time_ns())


class _Phase:
    """A context manager that is made once and entered many times."""
    __slots__ = ('_monitor', '_index', '_mark')

    def __init__(self, monitor, index, mark=None):
        self._monitor, self._index, self._mark = monitor, index, mark

    def __enter__(self):
        monitor = self._monitor
        try:
            monitor._stack.append(monitor._phase)
            monitor._switch(self._index)
            if self._mark is not None:
                monitor.mark(self._mark)
        except Exception as error:
            monitor._fail(error)
        return self

    def __exit__(self, kind, value, traceback):
        try:
            self._monitor._switch(self._monitor._stack.pop())
        except Exception as error:
            self._monitor._fail(error)
        return False


class _Step:
    __slots__ = ('_monitor',)

    def __init__(self, monitor):
        self._monitor = monitor

    def __enter__(self):
        try:
            self._monitor._begin_step()
        except Exception as error:
            self._monitor._fail(error)
        return self

    def __exit__(self, kind, value, traceback):
        try:
            self._monitor._end_step(kind is None)
        except Exception as error:
            self._monitor._fail(error)
        return False


class _Backward:
    """Splits backward() under DDP at the moment when the last gradient bucket was ready: before it is compute, after it
    the all-reduce that backward() waited for. On a CUDA device the two moments are events of the stream, read some
    steps later when they have happened; on the host they are clock readings."""
    __slots__ = ('_monitor',)

    def __init__(self, monitor):
        self._monitor = monitor

    def __enter__(self):
        monitor = self._monitor
        try:
            monitor._bucket_ready_ns = 0
            monitor._bucket_event = None
            monitor._stack.append(monitor._phase)
            monitor._switch(COMPUTE)
        except Exception as error:
            monitor._fail(error)
        return self

    def __exit__(self, kind, value, traceback):
        monitor = self._monitor
        try:
            if monitor._bucket_event is not None:
                end = monitor._new_event()
                end.record()
                monitor._events = (monitor._bucket_event, end)
            elif monitor._bucket_ready_ns > monitor._since:
                spent, now = monitor._spent, time.perf_counter_ns()
                spent[COMPUTE] += monitor._bucket_ready_ns - monitor._since
                spent[ALLREDUCE] += now - monitor._bucket_ready_ns
                monitor._since = now
            monitor._switch(monitor._stack.pop())
        except Exception as error:
            monitor._fail(error)
        return False


class Monitor:
    """What the training loop holds. Every method may be called on one that is off; none raises, none waits."""

    def __init__(self):
        self._phase, self._since = INIT, time.perf_counter_ns()
        self._spent = [0] * len(PHASES)
        self._stack = []
        self._step_number, self._step_start, self._in_step = None, 0, False
        self._reported = None
        self._queue = collections.deque(maxlen=QUEUE_ITEMS)
        self._sender = None
        self._step = _Step(self)
        self._phases = {name: _Phase(self, index) for index, name in enumerate(PHASES)}
        self._backward = _Backward(self)
        self._bucket_ready_ns, self._bucket_event, self._events = 0, None, None
        self._new_event = None
        self._late = collections.deque()
        self.dropped = 0
        self.failures = 0

    # ---- what the loop calls ----

    def step(self, number):
        """with bw.step(n): one step of the optimizer."""
        self._step_number = number
        return self._step

    def compute(self):
        return self._phases['compute']

    def allreduce(self):
        """The gradient all-reduce, waiting included."""
        return self._phases['allreduce']

    def data(self):
        return self._phases['data']

    def tensor_parallel(self):
        return self._phases['tp']

    def expert_parallel(self):
        return self._phases['ep']

    def receive(self):
        """Waiting for a pipeline neighbour."""
        return self._phases['recv']

    def checkpoint(self):
        return self._phases['checkpoint']

    def eval(self):
        return self._phases['eval']

    def backward(self):
        """with bw.backward(): loss.backward(), after watch(model)."""
        return self._backward

    def report(self, **values):
        """loss, grad_norm, tokens, sm, mem of the step under way. Plain numbers only: to read one from a device would
        wait for the device."""
        try:
            for name, value in values.items():
                if name in REPORTED and type(value) in (int, float):
                    if self._reported is None:
                        self._reported = {}
                    self._reported[name] = value
        except Exception as error:
            self._fail(error)

    def mark(self, kind, step=None, dur_ms=None):
        """The job says something of itself: checkpoint, eval, restart, finished. One rank is enough."""
        try:
            self._put(('mark', time.time_ns(), str(kind), self._step_number if step is None else step, dur_ms))
        except Exception as error:
            self._fail(error)

    def finish(self):
        """The job is done: silence from now on is right. Sends what is left, for a second at most."""
        try:
            if self._sender is not None and self._sender.identity.rank == 0:
                self.mark('finished')
            self._close()
        except Exception as error:
            self._fail(error)

    def close(self):
        """Ends the stream of this rank without a word on the job; what is left is sent, for a second at most."""
        try:
            self._close()
        except Exception as error:
            self._fail(error)

    def watch(self, model):
        """Registers comm_hook() on a DistributedDataParallel model that has no hook yet."""
        try:
            model.register_comm_hook(None, self.comm_hook())
        except Exception as error:
            self._fail(error)

    def comm_hook(self, inner=None):
        """A DDP communication hook that notes when the last bucket was ready, then calls inner(state, bucket); without
        inner it averages, as DDP does. A model has one hook: hand your own in as inner."""
        def hook(state, bucket):
            try:
                if bucket.is_last():
                    self._note_bucket(bucket.buffer())
            except Exception as error:
                self._fail(error)
            return inner(state, bucket) if inner is not None else _average(state, bucket)
        return hook

    # ---- inside ----

    def _start(self, identity, url):
        self._sender = _Sender(self, identity, url or 'http://127.0.0.1:7430')
        if identity.rank == 0:
            for name in ('checkpoint', 'eval'):
                self._phases[name]._mark = name
        self._sender.start()
        atexit.register(self._close)
        if hasattr(os, 'register_at_fork'):
            os.register_at_fork(after_in_child=self._leave)

    def _leave(self):
        """In a forked child, a data loader's worker perhaps: the rank's voice is its parent's."""
        self._sender = None
        self._queue.clear()

    def _close(self):
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()

    def _fail(self, error):
        self.failures += 1
        if self.failures == 1:
            _warn('ignored: %r' % (error,))

    def _switch(self, phase):
        now = time.perf_counter_ns()
        self._spent[self._phase] += now - self._since
        self._phase, self._since = phase, now

    def _begin_step(self):
        self._switch(OTHER)
        if self._step_start == 0:       # the first one: what was before it is the start of the job
            self._step_start = self._since
            self._spent = [0] * len(PHASES)
        self._in_step = True

    def _end_step(self, is_good):
        self._switch(BETWEEN)
        del self._stack[:]
        spent, took = self._spent, self._since - self._step_start
        self._spent, self._step_start, self._in_step = [0] * len(PHASES), self._since, False
        reported, self._reported = self._reported, None
        events, self._events = self._events, None
        if not is_good or self._sender is None:
            return
        spent[DATA] += spent[BETWEEN]
        item = ('step', time.time_ns(), self._step_number, took, spent, reported)
        if events is not None or self._late:
            self._late.append((item, events))
            self._read_events()
        else:
            self._put(item)

    def _put(self, item):
        if self._sender is None:
            return
        if len(self._queue) >= QUEUE_ITEMS:
            self.dropped += 1
        self._queue.append(item)

    def _note_bucket(self, buffer):
        if not buffer.is_cuda:
            self._bucket_ready_ns = time.perf_counter_ns()
            return
        if self._new_event is None:
            import torch
            self._new_event = lambda: torch.cuda.Event(enable_timing=True)
        event = self._new_event()
        event.record()
        self._bucket_event = event

    def _read_events(self):
        """Steps whose device has passed both events, in order; the host never waits for one."""
        while self._late:
            item, events = self._late[0]
            if events is not None and not events[1].query():
                if len(self._late) <= PENDING_EVENTS:
                    return
                events = None
            self._late.popleft()
            if events is not None:
                spent = item[4]
                waited = int(events[0].elapsed_time(events[1]) * 1e6)
                spent[ALLREDUCE] += waited
                # the host runs ahead of the device: what the step took and no phase explains is the device's work
                spent[COMPUTE] = max(0, item[3] - spent[ALLREDUCE] - spent[DATA])
            self._put(item)


def _average(_, bucket):
    import torch.distributed as dist
    world = dist.get_world_size()
    future = dist.all_reduce(bucket.buffer().div_(world), async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__('localhost', timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _Sender(threading.Thread):
    """The background thread: formats, sends, beats, backs off."""

    def __init__(self, monitor, identity, url):
        super().__init__(name='broomwagon', daemon=True)
        self.monitor, self.identity = monitor, identity
        self.url = urllib.parse.urlsplit(url)
        if self.url.scheme not in ('http', 'https', 'unix'):
            raise ValueError('BROOM_URL is no http://, https:// or unix:// address: %s' % url)
        self.headers = {'Content-Type': 'text/plain; charset=utf-8'}
        token = os.environ.get('BROOM_TOKEN')
        if not token and os.environ.get('BROOM_TOKEN_FILE'):
            with open(os.environ['BROOM_TOKEN_FILE']) as file:
                token = file.read().strip()
        if token:
            self.headers['Authorization'] = 'Bearer ' + token
        self.connection, self.hello_due = None, True
        self.unsent = []
        self.backoff_s, self.next_try, self.next_beat = 0.0, 0.0, 0.0
        self.wake, self.is_closing = threading.Event(), False
        self.deadline = None
        self.warned = set()

    # ---- the thread ----

    def run(self):
        while not self.is_closing:
            self._pass_once()
            self.wake.wait(SEND_EVERY_S)
        self.next_try = 0.0
        while (self.monitor._queue or self.unsent) and time.monotonic() < self.deadline:
            if not self._pass_once():
                break
        self._disconnect()

    def close(self):
        self.deadline = time.monotonic() + LAST_FLUSH_S
        self.is_closing = True
        self.wake.set()
        if threading.current_thread() is not self:
            self.join(LAST_FLUSH_S + 0.1)

    def _pass_once(self):
        """Sends what there is; false when it could not."""
        try:
            now = time.monotonic()
            if now >= self.next_beat and not self.is_closing:
                self.next_beat = now + BEAT_EVERY_S
                self.unsent.append(self._beat())
            if now < self.next_try:
                del self.unsent[:-BATCH_ITEMS]
                return False
            while True:
                more = self._take()
                if self.unsent or self.hello_due:
                    if not self._send():
                        return False
                if not more:
                    return True
        except Exception as error:
            self._warn_once('sender', 'ignored: %r' % (error,))
            self.unsent = []
            self._disconnect()
            self._wait_longer(None)
            return False

    # ---- lines ----

    def _take(self):
        queue = self.monitor._queue
        while queue and len(self.unsent) < BATCH_ITEMS:
            self.unsent.append(self._line(queue.popleft()))
        return bool(queue)

    def _line(self, item):
        if item[0] == 'mark':
            _, at_ns, kind, step, dur_ms = item
            fields = ['kind="%s"' % kind.replace('\\', '\\\\').replace('"', '\\"')]
            if step is not None:
                fields.append('step=%di' % step)
            if dur_ms is not None:
                fields.append('dur_ms=%.3f' % dur_ms)
            return 'mark,%s %s %d' % (self.identity.job_tag, ','.join(fields), at_ns)
        _, at_ns, step, took_ns, spent, reported = item
        fields = ['step=%di,step_ms=%.3f' % (step, took_ns / 1e6)]
        fields += ['%s=%.3f' % (name, spent[phase] / 1e6) for phase, name in FIELD_OF.items() if spent[phase] > 0]
        if reported:
            fields += ['%s=%.9g' % (name, value) if value == value else '%s=NaN' % name for name, value in reported.items()
                       if abs(value) != float('inf')]
        return 'step,%s %s %d' % (self.identity.tags, ','.join(fields), at_ns)

    def _beat(self):
        monitor = self.monitor
        phase = PHASES[monitor._phase]
        step = monitor._step_number
        return 'beat,%s phase="%s"%s %d' % (self.identity.tags, BEAT_PHASE.get(phase, phase),
                                            '' if step is None else ',step=%di' % step, time.time_ns())

    # ---- HTTP ----

    def _connect(self):
        timeout = LAST_FLUSH_S / 2 if self.is_closing else TIMEOUT_S
        if self.url.scheme == 'unix':
            return _UnixConnection(self.url.path, timeout)
        if self.url.scheme == 'https':
            context = ssl.create_default_context(cafile=os.environ.get('BROOM_CA_FILE'))
            return http.client.HTTPSConnection(self.url.hostname, self.url.port or 7430, timeout=timeout, context=context)
        return http.client.HTTPConnection(self.url.hostname, self.url.port or 7430, timeout=timeout)

    def _disconnect(self):
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def _send(self):
        """Posts what is unsent. True: it is off our hands."""
        lines = ([self.identity.hello()] if self.hello_due else []) + self.unsent
        is_fresh = self.connection is None
        try:
            if is_fresh:
                self.connection = self._connect()
            self.connection.request('POST', '/write', '\n'.join(lines).encode() + b'\n', self.headers)
            response = self.connection.getresponse()
            answer = response.read(65536)
        except (OSError, http.client.HTTPException) as error:
            self._disconnect()
            self.hello_due = True          # whoever answers next may not know us
            if is_fresh:
                self._warn_once('away', 'broomd is not there, training goes on: %s' % error)
                self._wait_longer(None)
            return False
        return self._took(response, answer)

    def _took(self, response, answer):
        if response.status in (429, 502, 503, 504):
            self._wait_longer(response.getheader('Retry-After'))
            return False
        if response.status == 400 and b'hello' in answer and not self.hello_due:
            self.hello_due = True
            return False
        if response.status >= 400:
            self._warn_once(response.status, 'HTTP %d: %s' % (response.status, answer[:300].decode('utf-8', 'replace')))
            if response.status != 400:     # an identity that is refused now is not asked about twice a second
                self._wait_longer('30')
        else:
            self.backoff_s = 0.0
            self.warned.discard('away')
        self.hello_due = response.status in (401, 403)
        self.unsent = []
        return response.status < 500

    def _wait_longer(self, retry_after):
        self.backoff_s = min(BACKOFF_MAX_S, max(BACKOFF_FIRST_S, self.backoff_s * 2))
        wait_s = self.backoff_s * random.uniform(0.5, 1.0)
        if retry_after is not None and retry_after.isdigit():
            wait_s = max(wait_s, min(float(retry_after), 60.0))
        self.next_try = time.monotonic() + wait_s

    def _warn_once(self, key, text):
        if key not in self.warned:
            self.warned.add(key)
            _warn(text)
