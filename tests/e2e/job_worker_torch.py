"""One rank of a real DistributedDataParallel job over gloo, reporting with the hook's DDP helper. Run as job_worker.py is, by
Debian's /usr/bin/python3 with python3-torch. A sleep stands for kernels on a device; forward, backward and all-reduce are real."""
import os
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../deploy/training'))
import broomwagon


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def main():
    rank, world, port, steps = (int(value) for value in sys.argv[1:5])
    step_s, burn_file = float(sys.argv[5]) / 1000, sys.argv[6]
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port), GLOO_SOCKET_IFNAME='lo', RANK=str(rank),
                      WORLD_SIZE=str(world), LOCAL_RANK=str(rank % 2), BROOM_NODE=f'node-{rank // 2}')
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group('gloo', rank=rank, world_size=world)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = torch.nn.CrossEntropyLoss()
    hook = broomwagon.start(job='e2e/real', dp=world)
    hook.watch(model)
    for step in range(steps):
        with hook.step(step):
            with hook.compute():
                time.sleep(step_s)
                if os.path.exists(burn_file):
                    burn(step_s * 0.5)
                optimizer.zero_grad()
                loss = loss_of(model(torch.randn(16, 64)), torch.randint(0, 8, (16,)))
            with hook.backward():
                loss.backward()
            with hook.compute():
                optimizer.step()
            hook.report(loss=loss.item())
    hook.close()
    os._exit(0)      # torch 1.13 with gloo and a Python communication hook can hang when it is taken down


main()
