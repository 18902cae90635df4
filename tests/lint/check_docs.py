#!/usr/bin/env python3
"""Documents: every relative link and anchor leads somewhere; ADR numbers are unique; every page of runbooks/ is in
its index and opens as a runbook does; pages that the product names are there; every event that the daemon logs is explained in runbooks/README.md."""
import os
import re

import tree

LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')
EVENT = re.compile(r'\blog_event\((.*?)(?:,\s*kv_|\);)', re.S)
OPENING = ('**How you got here.**', '**Look.**', '**Stop the robot.**')


def check_links(path, findings):
    text = tree.read(path)
    prose = re.sub(r'^```.*?^```', lambda m: '\n' * m.group(0).count('\n'), text, flags=re.S | re.M)
    for match in LINK.finditer(prose):
        target, _, anchor = match.group(1).partition('#')
        place = f'{path}:{tree.line_of(prose, match.start())}'
        if re.match(r'[a-z]+:', target):
            continue
        where = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(os.path.join(tree.ROOT, where)):
            findings.append(f'{place}: dead link {match.group(1)}')
        elif anchor and where.endswith('.md') and anchor not in tree.anchors(tree.read(where)):
            findings.append(f'{place}: {where} has no heading #{anchor}')


def check_runbooks(findings):
    index = tree.read('runbooks/README.md')
    for path in tree.files('.md'):
        folder, name = os.path.split(path)
        if folder != 'runbooks' or name == 'README.md':
            continue
        if f'({name})' not in index:
            findings.append(f'{path}:1: is not in runbooks/README.md')
        places = [tree.read(path).find(opening) for opening in OPENING]
        if -1 in places or places != sorted(places):
            findings.append(f'{path}:1: does not open with {", ".join(OPENING)}')


def check_mentions(findings):
    """A page that the product, an alert or a script names is there."""
    for path in tree.files():
        if path.endswith(('.c', '.h', '.yml', '.yaml', '.py', '.html')) and not path.startswith('tests/'):
            text = tree.read(path)
            findings.extend(f'{path}:{tree.line_of(text, match.start())}: there is no {match.group(0)}'
                            for match in re.finditer(r'\brunbooks/[\w/-]+\.md\b', text)
                            if not os.path.exists(os.path.join(tree.ROOT, match.group(0))))


def check_decisions(findings):
    numbers = {}
    for path in tree.files('.md'):
        match = re.match(r'runbooks/decisions/(\d+)-', path)
        if match and numbers.setdefault(match.group(1), path) != path:
            findings.append(f'{path}:1: number {match.group(1)} is also {numbers[match.group(1)]}')


def check_events(findings):
    index = tree.read('runbooks/README.md')
    for path in tree.files('.c'):
        text = tree.read(path)
        if path.startswith(('controller/', 'remediation/', 'detectors/')):
            findings.extend(f'{path}:{tree.line_of(text, call.start())}: log event {name} is not in runbooks/README.md'
                            for call in EVENT.finditer(text) for name in re.findall(r'"([^"]+)"', call.group(1))
                            if f'`{name}`' not in index)


def main():
    findings = []
    for path in tree.files('.md'):
        check_links(path, findings)
    check_runbooks(findings)
    check_mentions(findings)
    check_decisions(findings)
    check_events(findings)
    tree.finish(findings, 'documents')


main()
