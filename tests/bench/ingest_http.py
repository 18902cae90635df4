#!/usr/bin/env python3
"""What taking in samples costs a real broomd over HTTP on loopback, its recorder and detection on: accepted fields per CPU
second of the process, MB/s, and its resident memory.

usage: ingest_http.py [RANKS] [STEPS]      default 10368 ranks, 60 steps; BROOMD names the binary
"""
import http.client
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../e2e'))
from daemon import Daemon

FIELDS = 8


def step_lines(ranks, step, start_ns):
    lines = []
    for rank in range(ranks):
        compute = 1600 * (1 + 0.01 * (random.random() - 0.5))
        lines.append(f'step,job=bench/http,rank={rank} step={step}i,step_ms=2000.12,allreduce_ms={2000 - compute:.2f},'
                     f'compute_ms={compute:.2f},sm=0.901,mem=0.750,tokens=8192i,grad_norm=1.02 {start_ns + step * 2 * 10**9 + rank}\n')
    return ''.join(lines).encode()


def cpu_seconds(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def resident_mib(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('VmHWM')) // 1024


def main():
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 10368
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    random.seed(1)
    start_ns = time.time_ns()
    bodies = [step_lines(ranks, step, start_ns) for step in range(steps)]
    document = {'job': 'bench/http', 'world_size': ranks,
                'topology': {'racks': [{'rack': f'rack-{r}', 'trays': [f'node-{t}' for t in range(r * 16, min((r + 1) * 16, (ranks + 3) // 4))]}
                                       for r in range((ranks + 63) // 64)]},
                'ranks': [{'rank': r, 'node': f'node-{r // 4}', 'gpu': r % 4} for r in range(ranks)]}
    with Daemon() as daemon:
        code, text = daemon.request('PUT', '/api/v1/jobs/bench/http', json.dumps(document))
        assert code == 201, text
        pid = daemon.process.pid
        connection = http.client.HTTPConnection('127.0.0.1', daemon.port, timeout=60)
        before, began = cpu_seconds(pid), time.monotonic()
        for body in bodies:
            connection.request('POST', '/write', body)
            answer = connection.getresponse()
            assert answer.status == 204, answer.read()[:300]
            answer.read()
        cpu, wall = cpu_seconds(pid) - before, time.monotonic() - began
        size = sum(map(len, bodies))
        print(f'{ranks} ranks, {steps} steps, {size / 1e6:.0f} MB over HTTP')
        print(f'{ranks * steps * FIELDS / cpu / 1e6:.2f} M fields per CPU second, {size / cpu / 1e6:.0f} MB per CPU second, '
              f'{size / wall / 1e6:.0f} MB/s, {resident_mib(pid)} MiB resident at most')


main()
