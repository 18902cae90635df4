#!/usr/bin/env python3
"""The public exam: broom detect over every scenario beside the project, scored by its own score.py. Required: domain F1 of 0.90
or more, no healthy node evicted, and two seconds of CPU for 512 ranks and 500 steps. Skipped where ../shared is absent."""
import glob
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

from daemon import BROOM, ROOT, run, skip

SHARED = os.path.join(ROOT, '../shared')
EXAM = SHARED + '/exam'
F1_LEAST, CPU_MOST_S = 0.90, 2.0
RANKS, STEPS, SLOW_RANK, SLOW_FROM = 512, 500, 200, 250


def test_the_public_exam_is_passed():
    scenarios = sorted(os.path.dirname(path) for path in glob.glob(EXAM + '/*/truth.json'))
    with tempfile.TemporaryDirectory() as verdicts:
        for scenario in scenarios:
            with open(os.path.join(verdicts, os.path.basename(scenario) + '.jsonl'), 'wb') as out:
                subprocess.run([BROOM, 'detect', '--job', scenario + '/job.json', scenario + '/recording.lp.gz'],
                               stdout=out, check=True, timeout=120)
        score = subprocess.run([sys.executable, EXAM + '/score.py', '--verdicts', verdicts, *scenarios],
                               stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout
    print(score)
    f1 = float(re.search(r'domain_f1=([0-9.]+)', score).group(1))
    wrong = int(re.search(r'wrong_evictions=(\d+)', score).group(1))
    print(f'{len(scenarios)} scenarios: domain F1 {f1}, wrong evictions {wrong}')
    assert f1 >= F1_LEAST and wrong == 0, (f1, wrong)


def job_document():
    racks = [{'rack': f'r{rack}', 'nvlink_domain': f'r{rack}.0', 'trays': [f'r{rack}-n{tray}' for tray in range(18)]} for rack in range(8)]
    ranks = [{'rank': rank, 'node': f'r{rank // 64}-n{rank % 64 // 4}', 'gpu': rank % 4, 'rail': rank % 4} for rank in range(RANKS)]
    return {'job': 'e2e/wide', 'world_size': RANKS, 'parallel': {'tp': 1, 'pp': 1, 'dp': RANKS, 'order': 'tp-dp-pp'},
            'compute_ms': 'kernel', 'topology': {'racks': racks}, 'ranks': ranks}


def write_recording(path):
    """A job whose ranks differ by half a per cent; one of them computes a fifth longer from SLOW_FROM on."""
    chance = random.Random(1)
    now_ns = 1780000000 * 10**9
    with open(path, 'w', encoding='utf-8') as file:
        for step in range(STEPS):
            compute = [chance.gauss(1000, 5) for _ in range(RANKS)]
            if step >= SLOW_FROM:
                compute[SLOW_RANK] *= 1.2
            last = max(compute)
            now_ns += int((last + 60) * 1e6)
            for rank, own in enumerate(compute):
                file.write(f'step,job=e2e/wide,rank={rank} step={step}i,step_ms={last + 60:.2f},allreduce_ms={last - own + 50:.2f},'
                           f'compute_ms={own:.2f},sm=0.91,mem=0.62,grad_norm=0.8 {now_ns + rank * 1000}\n')


def test_512_ranks_and_500_steps_take_two_seconds_of_cpu():
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + '/job.json', 'w', encoding='utf-8') as file:
            json.dump(job_document(), file)
        write_recording(folder + '/recording.lp')
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([BROOM, 'detect', '--job', folder + '/job.json', folder + '/recording.lp'],
                              capture_output=True, text=True, check=True, timeout=120)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f'{RANKS} ranks, {STEPS} steps: {cpu_s:.2f} s of CPU')
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [verdict['ranks'] for verdict in verdicts] == [[SLOW_RANK]], done.stdout[:2000]
    assert cpu_s <= CPU_MOST_S, f'{cpu_s:.2f} s'


def judge_records(folder, tp, pp):
    """The ranks that hangs found from the records alone accuse. A folder of sixteen ranks or of four."""
    world = sum(re.search(r'\d+\.json$', name) is not None for name in os.listdir(folder))
    with tempfile.TemporaryDirectory() as place:
        with open(place + '/job.json', 'w', encoding='utf-8') as file:
            json.dump({'job': 'e2e/hang', 'world_size': world, 'compute_ms': 'kernel',
                       'parallel': {'tp': tp, 'pp': pp, 'dp': world // tp // pp, 'order': 'tp-dp-pp'},
                       'topology': {'racks': [{'rack': 'r0', 'nvlink_domain': 'r0.0', 'trays': [f'n{tray}' for tray in range(world // 4)]}]},
                       'ranks': [{'rank': rank, 'node': f'n{rank // 4}', 'gpu': rank % 4, 'rail': rank % 4} for rank in range(world)]}, file)
        done = subprocess.run([BROOM, 'detect', '--job', place + '/job.json', '--flight-recorder', folder],
                              stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    print(done.stdout)
    assert all(verdict['kind'] == 'hang' and not verdict['evict'] for verdict in verdicts), verdicts
    return sorted(rank for verdict in verdicts for rank in verdict['ranks'])


def test_records_of_injected_hangs_name_the_ranks_that_were_made_to_hang():
    for folder, tp, pp, guilty in ((SHARED + '/data/flight-recorder/gpu_error_1st', 2, 4, [12, 14]),
                                   (SHARED + '/data/flight-recorder/lock_gil_1st', 4, 2, [9, 14]),
                                   (SHARED + '/recordings/fr-hang-gloo', 1, 1, [2])):
        if os.path.isdir(folder):
            assert judge_records(folder, tp, pp) == guilty, folder


if __name__ == '__main__':
    if not os.path.exists(EXAM + '/score.py'):
        skip('there is no ../shared/exam')
    run([test_the_public_exam_is_passed, test_512_ranks_and_500_steps_take_two_seconds_of_cpu,
         test_records_of_injected_hangs_name_the_ranks_that_were_made_to_hang])
