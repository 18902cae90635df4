#!/usr/bin/env python3
"""The public exam: broom detect over every scenario beside the project, scored by its own score.py. Required: domain F1 of 0.90
or more and no healthy node evicted. Skipped where ../shared is absent."""
import glob
import os
import re
import subprocess
import sys
import tempfile

from daemon import BROOM, ROOT, skip

F1_LEAST = 0.90


def main():
    exam = os.path.join(ROOT, '../shared/exam')
    scenarios = sorted(os.path.dirname(path) for path in glob.glob(exam + '/*/truth.json'))
    if not scenarios or not os.path.exists(exam + '/score.py'):
        skip('there is no ../shared/exam')
    with tempfile.TemporaryDirectory() as verdicts:
        for scenario in scenarios:
            with open(os.path.join(verdicts, os.path.basename(scenario) + '.jsonl'), 'wb') as out:
                subprocess.run([BROOM, 'detect', '--job', scenario + '/job.json', scenario + '/recording.lp.gz'],
                               stdout=out, check=True, timeout=120)
        score = subprocess.run([sys.executable, exam + '/score.py', '--verdicts', verdicts, *scenarios],
                               stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout
    print(score)
    f1 = float(re.search(r'domain_f1=([0-9.]+)', score).group(1))
    wrong = int(re.search(r'wrong_evictions=(\d+)', score).group(1))
    print(f'{len(scenarios)} scenarios: domain F1 {f1}, wrong evictions {wrong}')
    return 0 if f1 >= F1_LEAST and wrong == 0 else 1


if __name__ == '__main__':
    sys.exit(main())
