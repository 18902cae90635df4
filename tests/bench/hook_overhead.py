#!/usr/bin/env python3
"""What the training hook costs a step: p50 and p99 of the hooks around an empty step, less those of a bare loop, at 1,000
steps a second while the background thread sends to a server. --limit-us N: exit 1 when the best p99 of three rounds is
above it (of three, since another process that takes the core is no cost of the hook)."""
import argparse
import http.server
import os
import socketserver
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
sys.path.insert(0, os.path.join(ROOT, 'deploy/training'))


class Answer204(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def serve():
    """In a process of its own: a server in this one would share the interpreter with the loop."""
    with socketserver.ThreadingTCPServer(('127.0.0.1', 0), Answer204) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


def bare(steps):
    took = []
    for _ in range(steps):
        begin = time.perf_counter_ns()
        took.append(time.perf_counter_ns() - begin)
        time.sleep(0.001)
    return took


def hooked(steps, monitor):
    took = []
    for step in range(steps):
        begin = time.perf_counter_ns()
        with monitor.step(step):
            with monitor.data():
                pass
            with monitor.compute():
                pass
            with monitor.allreduce():
                pass
            monitor.report(loss=1.25, tokens=4096)
        took.append(time.perf_counter_ns() - begin)
        time.sleep(0.001)
    return took


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] / 1e3


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--steps', type=int, default=3000)
    options.add_argument('--limit-us', type=float, default=None)
    options.add_argument('--serve', action='store_true')
    options = options.parse_args()
    if options.serve:
        serve()
        return 0
    server = subprocess.Popen([sys.executable, __file__, '--serve'], stdout=subprocess.PIPE)
    port = int(server.stdout.readline())
    try:
        import broomwagon
        monitor = broomwagon.start(job='bench', rank=0, world=1, url='http://127.0.0.1:%d' % port)
        plain = bare(options.steps)
        rounds = [hooked(options.steps, monitor) for _ in range(3)]
        monitor.finish()
    finally:
        server.kill()
        server.wait()
    print('bare loop        p50 %6.1f us  p99 %6.1f us' % (percentile(plain, 0.5), percentile(plain, 0.99)))
    for took in rounds:
        print('with the hooks   p50 %6.1f us  p99 %6.1f us' % (percentile(took, 0.5), percentile(took, 0.99)))
    print('failures %d, dropped %d' % (monitor.failures, monitor.dropped))
    best = min(percentile(took, 0.99) for took in rounds) - percentile(plain, 0.99)
    if options.limit_us is not None and (best > options.limit_us or monitor.failures or monitor.dropped):
        print('p99 of a step is %.1f us, more than %.0f us' % (best, options.limit_us))
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
