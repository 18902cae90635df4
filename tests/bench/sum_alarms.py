#!/usr/bin/env python3
"""Adds up long false-alarm runs of different seeds: the last running total of each file, finished or not.

    tests/bench/sum_alarms.py RUN.txt...

RUN.txt is what `bench_detect_accuracy --false-alarms` writes to both of its outputs. Claims are repeated.
"""
import math
import re
import sys

TOTAL = re.compile(r"(\d+) jobs, (\S+) rank-steps, (\S+) GPU-months, (\d+) claims, (\d+) evictions, (\d+) infos, (\d+) s CPU")


def poisson_upper(count):
    """The mean that gives at most `count` in one of twenty cases."""
    low, high = 0.0, 10.0 * (count + 3)
    for _ in range(80):
        mean = (low + high) / 2
        at_most = sum(math.exp(-mean) * mean ** k / math.factorial(k) for k in range(count + 1))
        low, high = (mean, high) if at_most > 0.05 else (low, mean)
    return high


def main(paths):
    sums = [0.0] * 7
    for path in paths:
        with open(path, encoding="utf-8") as run:
            lines = run.read().splitlines()
        totals = [match for line in lines if (match := TOTAL.match(line))]
        if not totals:
            sys.exit(f"no running total in '{path}'")
        sums = [a + float(b) for a, b in zip(sums, totals[-1].groups())]
        for line in lines:
            if line.startswith("- job"):
                print(f"{path}: {line[2:]}")
    jobs, rank_steps, months, claims, evictions, infos, cpu_s = sums
    print(f"{jobs:.0f} jobs, {rank_steps:.3e} rank-steps, {months:.0f} GPU-months, {claims:.0f} claims, "
          f"{evictions:.0f} evictions, {infos:.0f} infos, {cpu_s:.0f} s CPU: at most "
          f"{10000 * poisson_upper(int(evictions)) / months:.2f} evictions in 10,000 GPU-months (95 %)")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
