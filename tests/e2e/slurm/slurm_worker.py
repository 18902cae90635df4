"""One rank of a real job under srun: eight processes on four nodes really sum an array over loopback, report with the hook, save a step
number and go on from it after a requeue. Run as: slurm_worker.py FOLDER REDUCE_PORT STEP_MS. Its job is BROOM_JOB.
FOLDER/slow-NODE makes the ranks of a node compute half as long again; FOLDER/saved holds the step of the checkpoint."""
import array
import json
import os
import signal
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from job_worker import VALUES, Star, broomwagon

SAVE_EVERY = 25
wants_save = False


def on_signal(*_):
    global wants_save
    wants_save = True


def tell_document(world):
    """The job document: what this job is to Slurm."""
    workload = {'kind': 'slurm', 'cluster': 'lab', 'job_id': int(os.environ['SLURM_JOB_ID']), 'checkpoint_signal': 'USR1',
                'checkpoint_target': 'steps', 'checkpoint_file': os.path.join(sys.argv[1], 'saved')}
    body = json.dumps({'job': os.environ['BROOM_JOB'], 'world_size': world, 'workload': workload}).encode()
    request = urllib.request.Request(f'{os.environ["BROOM_URL"]}/api/v1/jobs/{os.environ["BROOM_JOB"]}', body, method='PUT')
    try:
        urllib.request.urlopen(request, timeout=5).read()
    except OSError as error:
        print('broomd is away:', error)      # a job never stops for it


def main():
    global wants_save
    folder, port, step_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 1000
    rank, world = int(os.environ['SLURM_PROCID']), int(os.environ['SLURM_NTASKS'])
    slow, saved = os.path.join(folder, 'slow-' + os.environ['SLURMD_NODENAME']), os.path.join(folder, 'saved')
    signal.signal(signal.SIGUSR1, on_signal)
    if rank == 0:
        tell_document(world)
    star = Star(rank, world, port)
    hook = broomwagon.start(dp=world)
    first = 0
    if os.path.exists(saved):
        with open(saved, encoding='utf-8') as file:
            first = int(file.read() or 0)
    values = array.array('d', [rank] * VALUES)
    for step in range(first, 1000000):
        with hook.step(step):
            with hook.compute():
                time.sleep(step_s * (1.5 if os.path.exists(slow) else 1))      # stands for kernels on a device
            with hook.allreduce():
                star.all_reduce(values)
        if rank == 0 and (wants_save or step % SAVE_EVERY == SAVE_EVERY - 1):
            wants_save = False
            with open(saved + '.new', 'w', encoding='utf-8') as file:
                file.write(str(step))
            os.replace(saved + '.new', saved)


main()
