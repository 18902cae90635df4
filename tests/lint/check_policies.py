#!/usr/bin/env python3
"""What is shipped passes the product's own lint: policies by `broom policy lint`, the example of the configuration is
what broomd prints. BROOM and BROOMD name the programs."""
import os
import subprocess
import sys
import tempfile

import tree


def main():
    broom, broomd = os.environ.get('BROOM'), os.environ.get('BROOMD')
    if not broom or not broomd:
        print('skipped: BROOM and BROOMD are not set')
        sys.exit(77)
    findings = []
    for path in tree.files('.yaml'):
        if path.startswith('deploy/policies/') or path == 'tests/e2e/empty-policy.yaml':
            done = subprocess.run([broom, 'policy', 'lint', os.path.join(tree.ROOT, path)], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0:
                findings.append(f'{path}: exit {done.returncode}\n{done.stdout.decode()}')
    example = subprocess.run([broomd, '--print-example'], stdout=subprocess.PIPE, check=True).stdout.decode()
    if example != tree.read('deploy/broomd.example.yaml'):
        findings.append('deploy/broomd.example.yaml is not what broomd --print-example prints')
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        file.write(example)
        file.flush()
        done = subprocess.run([broomd, '--config', file.name, '--check-config', '--policy',
                               os.path.join(tree.ROOT, 'deploy/policies/nvl72.yaml')], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            findings.append(f'broomd refuses its own example: {done.stdout.decode()}')
    tree.finish(findings, 'shipped policies and configuration')


main()
