#!/usr/bin/env python3
"""Every script parses: shell with bash -n, Python compiled (the training hook also for Python 3.8), and whatever
starts with #! and is meant to be run is executable."""
import ast
import os
import subprocess

import tree


def is_executable(path):
    return os.access(os.path.join(tree.ROOT, path), os.X_OK)


def main():
    findings = []
    for path in tree.files():
        if '/corpora/' in path or path.endswith(('.c', '.h', '.md', '.gz', '.zst')):
            continue
        text = tree.read(path)
        first = text.split('\n', 1)[0]
        if path.endswith('.py'):
            version = (3, 8) if path == 'deploy/training/broomwagon.py' else (3, 11)
            try:
                ast.parse(text, path, feature_version=version)
            except SyntaxError as error:
                findings.append(f'{path}:{error.lineno}: {error.msg}')
        elif first.startswith('#!') and 'sh' in first:
            done = subprocess.run(['bash', '-n', os.path.join(tree.ROOT, path)], stderr=subprocess.PIPE, check=False)
            if done.returncode != 0:
                findings.append(f'{path}: {done.stderr.decode().strip()}')
            if not is_executable(path) and not path.startswith('.ci/'):
                findings.append(f'{path}:1: starts with #! and is not executable')
    tree.finish(findings, 'scripts')


main()
