#!/usr/bin/env python3
"""deploy/quickstart, the first command that anybody types: under a minute once packages and build are there, an incident
that can be verified, and a broomd that answers until --stop."""
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

from daemon import ROOT, free_port

QUICKSTART = os.path.join(ROOT, 'deploy/quickstart')


def main():
    with tempfile.TemporaryDirectory(prefix='broom-quickstart-') as folder:
        os.chmod(folder, 0o755)      # PostgreSQL runs under an account of its own when this is root
        environment = dict(os.environ, BROOM_DATA_DIR=folder + '/data', BROOM_RUN_DIR=folder + '/run',
                           BROOM_API=f'127.0.0.1:{free_port()}', BROOM_HEALTH=f'127.0.0.1:{free_port()}')
        subprocess.run(['cmake', '--build', os.path.join(ROOT, 'build'), '--target', 'broom', 'broomd'], check=True,
                       stdout=subprocess.DEVNULL, timeout=600)
        began = time.monotonic()
        done = subprocess.run([QUICKSTART], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=300, check=False)
        took = time.monotonic() - began
        print(done.stdout, f'exit {done.returncode} after {took:.0f} s', sep='\n')
        try:
            assert done.returncode == 0
            assert took < 60, 'a first user waits no longer than a minute'
            assert 'mitigated' in done.stdout and 'ended as it must' in done.stdout
            page = urllib.request.urlopen(f'http://{environment["BROOM_API"]}/', timeout=10).read()
            assert b'<html' in page.lower()
            commands = re.findall(r'^  ((?:tar|build/broom) .*)$', done.stdout, re.M)
            assert len(commands) == 3, commands
            for command in commands:
                tried = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
                assert tried.returncode == 0, (command, tried.stdout, tried.stderr)
        finally:
            began = time.monotonic()
            subprocess.run([QUICKSTART, '--stop'], env=environment, check=True, timeout=60)
            print(f'--stop took {time.monotonic() - began:.1f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
