#!/usr/bin/env python3
"""Hindsight is forbidden: a recording that is cut after any line gives the verdicts that the whole one gave
up to there, and the end of the input adds none. Every public scenario is cut at twenty places.

BROOM names the program; without it, or without the scenarios beside the project, the test is skipped.
"""
import glob
import gzip
import os
import random
import subprocess
import sys

CUTS = 20
SKIPPED = 77


def detect(broom, job, data):
    done = subprocess.run([broom, "detect", "--job", job, "-"], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"broom detect ended with {done.returncode}: {done.stderr.decode()[:400]}")
    return done.stdout


def cuts_of(lines, seed):
    """Evenly spread and a little off, so that they fall inside steps, bursts and beats alike."""
    chance = random.Random(seed)
    places = {max(1, min(len(lines) - 1, (i + 1) * len(lines) // (CUTS + 1) + chance.randint(-40, 40)))
              for i in range(CUTS)}
    return sorted(places)


def check(broom, folder, seed):
    with gzip.open(os.path.join(folder, "recording.lp.gz")) as recording:
        lines = recording.read().splitlines(keepends=True)
    job = os.path.join(folder, "job.json")
    whole = detect(broom, job, b"".join(lines))
    if detect(broom, job, b"".join(lines)) != whole:
        return f"{os.path.basename(folder)}: two runs differ"
    for place in cuts_of(lines, seed):
        part = detect(broom, job, b"".join(lines[:place]))
        if not whole.startswith(part):
            return f"{os.path.basename(folder)}: cut after line {place}: earlier verdicts changed"
    return None


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    scenarios = sorted(glob.glob(os.path.join(here, "../../../shared/exam/*/recording.lp.gz")))
    broom = os.environ.get("BROOM")
    if not broom or not scenarios:
        print("skipped: BROOM is not set or there are no scenarios")
        return SKIPPED
    seed = int(os.environ.get("TEST_SEED", "1"))
    print(f"{len(scenarios)} scenarios, {CUTS} cuts each, TEST_SEED={seed}")
    failures = [failure for failure in (check(broom, os.path.dirname(s), seed) for s in scenarios) if failure]
    print("\n".join(failures) if failures else "no hindsight")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
