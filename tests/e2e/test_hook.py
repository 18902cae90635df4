#!/usr/bin/env python3
"""deploy/training/broomwagon.py against a server that answers whatever the test wants."""
import http.server
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
HOOK = os.path.join(ROOT, 'deploy/training')
sys.path.insert(0, HOOK)
import broomwagon  # noqa: E402

broomwagon.SEND_EVERY_S = 0.02
broomwagon.BACKOFF_FIRST_S = 0.02
broomwagon.BEAT_EVERY_S = 0.1


class Server:
    """Keeps the lines it was sent; answers lists (status, headers, body) that are used up first."""

    def __init__(self):
        self.lines, self.answers, self.headers, self.connections = [], [], [], 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def setup(self):
                super().setup()
                outer.connections += 1

            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                outer.headers.append(dict(self.headers))
                status, headers, answer = outer.answers.pop(0) if outer.answers else (204, {}, b'')
                if status == 204:
                    outer.lines += body.decode().splitlines()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header('Content-Length', str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.http.daemon_threads = True
        self.url = 'http://127.0.0.1:%d' % self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, kwargs={'poll_interval': 0.02}, daemon=True).start()

    def of(self, measurement):
        return [line for line in self.lines if line.startswith(measurement + ',')]

    def wait_for(self, condition):
        deadline = time.monotonic() + 10
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError('not within 10 s; lines so far: %r' % self.lines[-10:])
            time.sleep(0.005)

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def fields(line):
    parts = line.split(' ')
    return dict(field.split('=') for field in parts[1].split(','))


class Hook(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)

    def monitor(self, **more):
        given = dict(job='default/llm-17', rank=3, world=8, host='gb-000001', gpu=3, url=self.server.url)
        given.update(more)
        monitor = broomwagon.start(**given)
        self.addCleanup(monitor._close)
        return monitor

    def test_hello_comes_first_and_names_the_rank(self):
        self.monitor(tp=4, attempt=2).finish()
        self.assertRegex(self.server.lines[0],
                         r'^hello,job=default/llm-17,rank=3 host="gb-000001",world=8i,gpu=3i,attempt=2i,tp=4i \d{19}$')

    def test_a_step_tells_its_parts_and_a_wait_between_steps_is_data(self):
        monitor = self.monitor()
        for step in (7, 8):
            with monitor.step(step):
                with monitor.compute():
                    time.sleep(0.02)
                    with monitor.tensor_parallel():
                        time.sleep(0.01)
                with monitor.allreduce():
                    time.sleep(0.03)
                monitor.report(loss=float('nan'), tokens=4096, unknown=1, grad_norm='text')
            time.sleep(0.015)
        monitor.finish()
        first, second = (fields(line) for line in self.server.of('step'))
        self.assertEqual((first['step'], second['step']), ('7i', '8i'))
        for name, least in (('compute_ms', 20), ('tp_ms', 10), ('allreduce_ms', 30)):
            self.assertGreaterEqual(float(second[name]), least)
        parts = sum(float(second[name]) for name in ('compute_ms', 'tp_ms', 'allreduce_ms', 'data_ms'))
        self.assertLessEqual(parts, float(second['step_ms']) + 0.01)
        self.assertNotIn('data_ms', first)
        self.assertGreaterEqual(float(second['data_ms']), 15)
        self.assertGreaterEqual(float(second['step_ms']), 75)
        self.assertEqual(second['loss'], 'NaN')
        self.assertEqual(second['tokens'], '4096')
        self.assertNotIn('unknown', second)
        self.assertNotIn('grad_norm', second)

    def test_beats_tell_the_phase_in_which_a_rank_is_stuck(self):
        monitor = self.monitor()
        with monitor.step(12):
            with monitor.allreduce():
                self.server.wait_for(lambda: any('phase="allreduce",step=12i' in line for line in self.server.of('beat')))

    def test_only_rank_0_speaks_for_the_job(self):
        other, first = self.monitor(rank=1), self.monitor(rank=0)
        for monitor in (other, first):
            with monitor.step(5):
                with monitor.checkpoint():
                    pass
            monitor.finish()
        marks = [line.rsplit(' ', 1)[0] for line in self.server.of('mark')]
        self.assertEqual(marks, ['mark,job=default/llm-17 kind="checkpoint",step=5i',
                                 'mark,job=default/llm-17 kind="finished",step=5i'])

    def test_one_connection_is_kept(self):
        monitor = self.monitor()
        for step in range(5):
            with monitor.step(step):
                pass
            self.server.wait_for(lambda: len(self.server.of('step')) > step)
        self.assertEqual(self.server.connections, 1)

    def test_a_batch_that_was_not_taken_is_sent_again(self):
        self.server.answers = [(503, {'Retry-After': '0'}, b'{}'), (429, {}, b'{}')]
        monitor = self.monitor()
        with monitor.step(1):
            pass
        self.server.wait_for(lambda: self.server.of('step'))
        self.assertEqual(len(self.server.of('step')), 1)

    def test_a_broomd_that_forgot_the_job_is_told_again_who_speaks(self):
        monitor = self.monitor()
        with monitor.step(1):
            pass
        self.server.wait_for(lambda: self.server.of('step'))
        self.server.answers = [(400, {}, b'{"bad":[{"line":1,"cause":"unknown job: send hello first"}]}')]
        with monitor.step(2):
            pass
        self.server.wait_for(lambda: len(self.server.of('step')) == 2)
        self.assertEqual(len(self.server.of('hello')), 2)

    def test_the_token_is_sent_and_a_refused_one_is_not_asked_about_all_the_time(self):
        os.environ['BROOM_TOKEN'] = 'secret'
        self.addCleanup(os.environ.pop, 'BROOM_TOKEN')
        self.server.answers = [(401, {}, b'{"error":"who?"}')] * 50
        monitor = self.monitor()
        self.server.wait_for(lambda: self.server.headers)
        self.assertEqual(self.server.headers[0]['Authorization'], 'Bearer secret')
        for step in range(20):
            with monitor.step(step):
                time.sleep(0.01)
        self.assertLess(len(self.server.headers), 3)

    def test_nobody_there_costs_nothing_but_the_oldest_samples(self):
        monitor = self.monitor(url='http://127.0.0.1:9')
        steps = broomwagon.QUEUE_ITEMS + 600
        begin = time.monotonic()
        for step in range(steps):
            with monitor.step(step):
                pass
        self.assertLess(time.monotonic() - begin, 2)
        self.assertGreater(monitor.dropped, 0)
        self.assertLessEqual(len(monitor._queue), broomwagon.QUEUE_ITEMS)
        self.assertEqual(monitor._queue[-1][2], steps - 1)
        begin = time.monotonic()
        monitor.finish()
        self.assertLess(time.monotonic() - begin, 2)

    def test_a_server_that_never_answers_does_not_hold_the_loop_or_its_end(self):
        import socket
        deaf = socket.socket()
        self.addCleanup(deaf.close)
        deaf.bind(('127.0.0.1', 0))
        deaf.listen(8)
        monitor = self.monitor(url='http://127.0.0.1:%d' % deaf.getsockname()[1])
        begin = time.monotonic()
        for step in range(100):
            with monitor.step(step):
                pass
        self.assertLess(time.monotonic() - begin, 0.5)
        monitor.finish()
        self.assertLess(time.monotonic() - begin, 3)

    def test_the_loops_own_exception_passes_and_its_step_is_not_counted(self):
        monitor = self.monitor()
        with self.assertRaises(ZeroDivisionError):
            with monitor.step(1):
                with monitor.compute():
                    1 / 0
        with monitor.step(2):
            pass
        monitor.finish()
        self.assertEqual([fields(line)['step'] for line in self.server.of('step')], ['2i'])

    def test_wrong_use_raises_nothing(self):
        monitor = self.monitor()
        with monitor.step('seven'):
            monitor.report(loss=object())
        with monitor.step(None):
            monitor._stack.clear()
            monitor.compute().__exit__(None, None, None)
        monitor.watch(object())
        with monitor.backward():
            pass
        with monitor.step(3):
            pass
        self.server.wait_for(lambda: any('step=3i' in line for line in self.server.of('step')))
        self.assertGreater(monitor.failures, 0)

    def test_without_a_rank_or_switched_off_it_does_nothing(self):
        for more in ({'job': None}, {'url': 'ftp://x'}):
            monitor = self.monitor(**more)
            with monitor.step(1), monitor.compute():
                pass
            monitor.finish()
        os.environ['BROOM_DISABLE'] = '1'
        self.addCleanup(os.environ.pop, 'BROOM_DISABLE')
        with self.monitor().step(1):
            pass
        self.assertEqual(self.server.lines, [])

    def test_a_forked_child_is_silent(self):
        monitor = self.monitor()
        child = os.fork()
        if child == 0:
            with monitor.step(99):
                pass
            monitor.finish()
            os._exit(0)
        os.waitpid(child, 0)
        with monitor.step(1):
            pass
        monitor.finish()
        self.assertEqual([fields(line)['step'] for line in self.server.of('step')], ['1i'])

    def test_a_unix_socket_is_an_address_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'broomd.sock')
            import socketserver

            class UnixServer(socketserver.ThreadingUnixStreamServer):
                daemon_threads = True

            handler = self.server.http.RequestHandlerClass

            class Handler(handler):
                def address_string(self):
                    return 'unix'

            with UnixServer(path, Handler) as server:
                threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.02}, daemon=True).start()
                monitor = self.monitor(url='unix://' + path)
                with monitor.step(4):
                    pass
                monitor.finish()
                server.shutdown()
        self.assertEqual([fields(line)['step'] for line in self.server.of('step')], ['4i'])

    def test_backward_is_split_where_the_last_bucket_was_ready(self):
        monitor = self.monitor()
        buckets = []

        class Bucket:
            def is_last(self):
                return len(buckets) == 2

            def buffer(self):
                return type('Tensor', (), {'is_cuda': False})()

        hook = monitor.comm_hook(inner=lambda state, bucket: 'future')
        with monitor.step(1):
            with monitor.backward():
                for _ in range(2):
                    time.sleep(0.01)
                    buckets.append(1)
                    self.assertEqual(hook(None, Bucket()), 'future')
                time.sleep(0.03)
        monitor.finish()
        step = fields(self.server.of('step')[0])
        self.assertGreaterEqual(float(step['compute_ms']), 20)
        self.assertGreaterEqual(float(step['allreduce_ms']), 30)
        self.assertLessEqual(float(step['compute_ms']) + float(step['allreduce_ms']), float(step['step_ms']) + 0.01)

    def test_on_a_device_the_events_are_read_when_they_have_happened(self):
        monitor = self.monitor()
        done = []

        class Event:
            def record(self):
                pass

            def query(self):
                return bool(done)

            def elapsed_time(self, other):
                return 12.5

        class Bucket:
            def is_last(self):
                return True

            def buffer(self):
                return type('Tensor', (), {'is_cuda': True})()

        monitor._new_event = Event
        hook = monitor.comm_hook(inner=lambda state, bucket: None)
        for step in range(3):
            with monitor.step(step):
                with monitor.backward():
                    hook(None, Bucket())
                time.sleep(0.02)
            if step == 1:
                self.assertEqual(len(monitor._late), 2)
                done.append(1)
        monitor.finish()
        steps = [fields(line) for line in self.server.of('step')]
        self.assertEqual([step['step'] for step in steps], ['0i', '1i', '2i'])
        for step in steps:
            self.assertEqual(step['allreduce_ms'], '12.500')
            self.assertLess(float(step['compute_ms']), float(step['step_ms']) - 12)

    def test_importing_needs_nothing_but_the_standard_library(self):
        code = 'import sys, broomwagon; print(sorted(m for m in ("torch", "numpy", "requests") if m in sys.modules))'
        done = subprocess.run([sys.executable, '-S', '-c', code], env={'PYTHONPATH': HOOK}, stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout.strip(), b'[]')


if __name__ == '__main__':
    unittest.main(verbosity=2)
