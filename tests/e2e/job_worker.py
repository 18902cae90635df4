"""One rank of a real synchronous job: works, then really sums an array with all others over loopback TCP, and reports with the
hook. Run as: job_worker.py RANK WORLD REDUCE_PORT STEPS STEP_MS BURN_FILE. While BURN_FILE exists, every step of this rank burns
more CPU. With Debian's python3-torch, job_worker_torch.py does the same through DDP."""
import array
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../deploy/training'))
import broomwagon

VALUES = 4096


def receive(connection, size):
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError('a peer is gone')
        parts += part
    return bytes(parts)


class Star:
    """All-reduce through rank 0: it adds what all send and sends the sum back."""

    def __init__(self, rank, world, port):
        self.rank, self.peers, self.root = rank, [], None
        if rank == 0:
            server = socket.create_server(('127.0.0.1', port), backlog=world)
            self.peers = [server.accept()[0] for _ in range(world - 1)]
            return
        end = time.monotonic() + 30
        while True:
            try:
                self.root = socket.create_connection(('127.0.0.1', port))
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def all_reduce(self, values):
        if self.rank != 0:
            self.root.sendall(values.tobytes())
            return array.array('d', receive(self.root, 8 * len(values)))
        total = list(values)
        for peer in self.peers:
            total = [a + b for a, b in zip(total, array.array('d', receive(peer, 8 * len(values))))]
        out = array.array('d', total)
        for peer in self.peers:
            peer.sendall(out.tobytes())
        return out


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def main():
    rank, world, port, steps = (int(value) for value in sys.argv[1:5])
    step_s, burn_file = float(sys.argv[5]) / 1000, sys.argv[6]
    star = Star(rank, world, port)
    hook = broomwagon.start(job='e2e/real', rank=rank, world=world, host=f'node-{rank // 2}', gpu=rank % 2, dp=world)
    values = array.array('d', [rank] * VALUES)
    for step in range(steps):
        with hook.step(step):
            with hook.compute():
                time.sleep(step_s)          # stands for kernels on a device
                burn(0.001)
                if os.path.exists(burn_file):
                    burn(step_s * 0.5)
            with hook.allreduce():
                total = star.all_reduce(values)
        assert total[0] == world * (world - 1) / 2, struct.pack('d', total[0])
    hook.close()


if __name__ == '__main__':
    main()
