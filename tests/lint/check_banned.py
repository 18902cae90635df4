#!/usr/bin/env python3
"""Calls that the product does not make: unbounded string functions, clocks outside controller/sys, allocation
outside base/mem.c, a process's end outside main, waiting anywhere."""
import re

import tree

ANYWHERE = 'strcpy strcat sprintf vsprintf gets strtok strtok_r atoi atol atof system popen usleep sleep rand srand'
CLOCKS = 'time gettimeofday clock_gettime localtime localtime_r mktime'
MEMORY = 'malloc calloc realloc reallocarray strdup strndup asprintf vasprintf free'
ENDS = 'exit abort'


def calls(words):
    # a member (->free, .time) or a declaration of one's own (x_free) is none of these
    return re.compile(r'(?<![\w.>])(' + '|'.join(words.split()) + r')\s*\(')


RULES = (
    ('is banned', calls(ANYWHERE), lambda path: False),
    ('reads a clock: only controller/sys does', calls(CLOCKS), lambda path: path.startswith('controller/sys/')),
    ('allocates: only controller/base/mem.c does', calls(MEMORY), lambda path: path == 'controller/base/mem.c'),
    ('ends the process: only mains and controller/base/mem.c do', calls(ENDS),
     lambda path: path == 'controller/base/mem.c' or path.startswith('controller/main_')),
)


def main():
    findings = []
    for path in tree.files('.c', '.h'):
        if not path.startswith(('controller/', 'detectors/', 'remediation/')):
            continue
        code = tree.code_of(tree.read(path))
        for why, pattern, is_allowed in RULES:
            if is_allowed(path):
                continue
            findings += [f'{path}:{tree.line_of(code, match.start())}: {match.group(1)}() {why}'
                         for match in pattern.finditer(code)]
    tree.finish(findings, 'banned calls')


main()
