#!/usr/bin/env python3
"""What is shipped passes the product's own lint: policies by `broom policy lint`, the example of the configuration is
what broomd prints, alerts are rules that Prometheus takes about metrics that there are, with a runbook that there is.
BROOM and BROOMD name the programs."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tree


def check_alerts(findings):
    path = 'deploy/prometheus/broomd.rules.yml'
    text, table = tree.read(path), tree.read('controller/admin/metrics.c')
    findings.extend(f'{path}:{tree.line_of(text, match.start())}: there is no metric {match.group(0)}'
                    for match in re.finditer(r'\bbroom_[a-z_]+\b', text) if f'"{match.group(0)}"' not in table)
    for match in re.finditer(r'runbook: (\S+?)(?:#(\S+))?$', text, re.M):
        page, anchor = match.groups()
        if not os.path.exists(os.path.join(tree.ROOT, page)) or (anchor and anchor not in tree.anchors(tree.read(page))):
            findings.append(f'{path}:{tree.line_of(text, match.start())}: there is no {match.group(0)}')
    if shutil.which('promtool'):
        done = subprocess.run(['promtool', 'check', 'rules', os.path.join(tree.ROOT, path)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            findings.append(f'{path}: {done.stdout.decode()}')


def main():
    broom, broomd = os.environ.get('BROOM'), os.environ.get('BROOMD')
    if not broom or not broomd:
        print('skipped: BROOM and BROOMD are not set')
        sys.exit(77)
    findings = []
    check_alerts(findings)
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
    tree.finish(findings, 'shipped policies, configuration and alerts')


main()
