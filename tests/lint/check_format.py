#!/usr/bin/env python3
"""C is formatted by clang-format 14 with the .clang-format of the root; --fix rewrites the files."""
import os
import shutil
import subprocess
import sys

import tree


def main():
    program = shutil.which('clang-format-14')
    if program is None:
        print('skipped: clang-format-14 is not installed')
        sys.exit(77)
    paths = [os.path.join(tree.ROOT, path) for path in tree.files('.c', '.h')]
    if '--fix' in sys.argv[1:]:
        subprocess.run([program, '-i', *paths], check=True)
        return
    findings = []
    for path in paths:
        done = subprocess.run([program, '--dry-run', '-Werror', path], stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            first = done.stderr.decode().splitlines()[0]
            findings.append(os.path.relpath(first, tree.ROOT) if first.startswith('/') else first)
    tree.finish(findings, 'files that clang-format would change')


main()
