#!/usr/bin/env python3
"""Files as a reader meets them: at most 800 lines and 100 lines a function, comments without history or notes to
oneself, no path of somebody's machine, no host that packages come from."""
import re

import tree

LINES_MAX, FUNCTION_MAX, COMMENT_MAX = 800, 100, 12
HISTORY = re.compile(r'\b(used to (be|do|have|call)|formerly|previously|was changed to|TODO|FIXME|XXX|HACK)\b')
MACHINE = re.compile(r'(?<![\w.])/(?:work|root|home/\w+)/|\b(?:deb\.debian|pypi|files\.pythonhosted|proxy\.golang|registry\.npmjs)\.org\b')
PRODUCT = ('controller/', 'detectors/', 'remediation/')


def check_history(path, text, findings):
    if path.endswith(('.c', '.h')):
        comments = tree.comments_of(text)
    elif path.endswith(('.py', '.sh', '.yaml', '.yml')) or text.startswith('#!'):
        comments = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith('#')]
    elif path.endswith('.sql'):
        comments = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith('--')]
    else:
        return
    for number, comment in comments:
        match = HISTORY.search(comment)
        if match:
            findings.append(f'{path}:{number}: a comment tells history or a plan: "{match.group(0)}"')
        if path.startswith(PRODUCT) and comment.count('\n') >= COMMENT_MAX and number > 1 and path.endswith('.c'):
            findings.append(f'{path}:{number}: a comment of more than {COMMENT_MAX} lines belongs into a document')


def check_functions(path, text, findings):
    start = None
    for number, line in enumerate(tree.code_of(text).splitlines(), 1):
        if line == '{':
            start = number
        elif line == '}' and start is not None:
            if number - start - 1 > FUNCTION_MAX:
                findings.append(f'{path}:{start}: a function of {number - start - 1} lines, more than {FUNCTION_MAX}')
            start = None


def main():
    findings = []
    for path in tree.files():
        if path == 'tests/lint/check_files.py' or '/corpora/' in path:
            continue
        text = tree.read(path)
        if path.endswith(('.c', '.h', '.py', '.sql')):
            if text.count('\n') > LINES_MAX:
                findings.append(f'{path}:{LINES_MAX}: {text.count(chr(10))} lines, more than {LINES_MAX}')
            if path.endswith(('.c', '.h')):
                check_functions(path, text, findings)
        check_history(path, text, findings)
        findings += [f'{path}:{tree.line_of(text, match.start())}: "{match.group(0)}" belongs to one machine or registry'
                     for match in MACHINE.finditer(text)]
    tree.finish(findings, 'files')


main()
