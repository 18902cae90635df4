"""Programs of the bench: started with a log of their own, stopped, frozen and killed by their process ids alone."""
import ctypes
import os
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """One program. With outlives=False it dies with the thread that started it, so that a killed test leaves nothing."""

    def __init__(self, name, command, folder, environment=None, outlives=False):
        self.name, self.command, self.outlives = name, command, outlives
        self.environment = dict(os.environ, **(environment or {}))
        self.log_path = os.path.join(folder, name + '.log')
        self.process = None

    def start(self, *more):
        assert not self.is_running(), f'{self.name} runs already'
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen([*self.command, *more], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            env=self.environment, start_new_session=self.outlives,
                                            preexec_fn=None if self.outlives else die_with_parent)

    @property
    def pid(self):
        return self.process.pid

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def check(self):
        assert self.is_running(), f'{self.name} ended with {self.process.returncode}: {self.log()[-1500:]}'

    def log(self):
        with open(self.log_path, encoding='utf-8', errors='replace') as file:
            return file.read()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def wait(self, timeout_s=30):
        """The exit code of a program that ends by itself."""
        return self.process.wait(timeout=timeout_s)


def stop_all(programs, patience_s=3):
    """Ends them all at once: politely, then not. A bench is thrown away, so nobody waits for a long farewell."""
    running = [program for program in programs if program.is_running()]
    for program in running:
        program.thaw()
        program.process.terminate()
    end = time.monotonic() + patience_s
    for program in running:
        try:
            program.process.wait(timeout=max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            program.kill()
