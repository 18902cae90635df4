#!/usr/bin/env python3
"""Who may include whom: the two tables of ARCHITECTURE.md against every include line of the product."""
import fnmatch
import os
import re

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def load_layers():
    """[(name, patterns, allowed names)], in the order of the table; 'all' and 'all but x, y' are spelled out."""
    rows = [(name, [p.strip() for p in files.split(',')], may) for name, files, may in tree.table('ARCHITECTURE.md', 'layers')]
    names = [name for name, _, _ in rows]
    layers = []
    for name, patterns, may in rows:
        if may.startswith('all'):
            without = [word.strip() for word in may[len('all but'):].split(',')] if may.startswith('all but') else []
            allowed = set(names) - set(without)
        else:
            allowed = {word.strip() for word in may.split(',')}
        unknown = allowed - set(names)
        if unknown:
            raise SystemExit(f'ARCHITECTURE.md: layer {name} may include what is no layer: {", ".join(sorted(unknown))}')
        layers.append((name, patterns, allowed))
    return layers


def matches(path, pattern):
    """A pattern is a file, dir/*.c (that folder alone), or a folder with all below it."""
    if '*' in pattern:
        return fnmatch.fnmatch(path, pattern) and os.path.dirname(path) == os.path.dirname(pattern)
    return path == pattern or path.startswith(pattern + '/')


def layer_of(path, layers):
    """The layer with the longest pattern that holds the path: main_broom.c is main, though controller/*.c holds it."""
    found = [(len(pattern), name) for name, patterns, _ in layers for pattern in patterns if matches(path, pattern)]
    return max(found)[1] if found else None


def check_includes(path, layers, owners, findings):
    text = tree.read(path)
    own = layer_of(path, layers)
    allowed = next((may for name, _, may in layers if name == own), None)
    if own is None:
        findings.append(f'{path}:1: belongs to no layer of ARCHITECTURE.md')
    for match in INCLUDE.finditer(text):
        bracket, header = match.groups()
        place = f'{path}:{tree.line_of(text, match.start())}'
        if bracket == '"' and header.startswith(('controller/', 'detectors/', 'remediation/')):
            target = layer_of(header, layers)
            if allowed is not None and target not in allowed:
                findings.append(f'{place}: {own} may not include {target} ({header})')
        elif bracket == '"' and '/' not in header and not header.endswith(('_html.h', '_sql.h')):
            findings.append(f'{place}: "{header}" does not start at the root of the repository')
        elif bracket == '<' and any(header == o or (o.endswith('/') and header.startswith(o)) for o in owners):
            holders = next(h for o, h in owners.items() if header == o or (o.endswith('/') and header.startswith(o)))
            if not any(path == h or (h.endswith('/') and path.startswith(h)) for h in holders):
                findings.append(f'{place}: <{header}> belongs to {", ".join(holders)}')
        elif bracket == '<' and header.startswith(('event2/', 'curl/', 'openssl/', 'gsl/', 'cjson/', 'libpq')):
            findings.append(f'{place}: <{header}> has no owner in ARCHITECTURE.md')


def main():
    layers = load_layers()
    owners = {header: [h.strip() for h in holders.split(',')] for header, holders in tree.table('ARCHITECTURE.md', 'owners')}
    findings = []
    for path in tree.files('.c', '.h'):
        if path.startswith(('controller/', 'detectors/', 'remediation/')):
            check_includes(path, layers, owners, findings)
    tree.finish(findings, 'include layers')


main()
