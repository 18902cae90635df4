#!/usr/bin/env python3
"""Banned calls, the single writer of incident state, sizes of files and functions, comments that tell history."""
import re
import tree

ANYWHERE = 'strcpy strcat sprintf vsprintf gets strtok atoi atol system popen usleep sleep rand srand'.split()
CLOCKS = 'time gettimeofday clock_gettime localtime gmtime ctime'.split()
MEMORY = 'malloc calloc realloc free strdup strndup asprintf'.split()
HISTORY = re.compile(r'\b(used to (be|do|have|call)|formerly|was changed to|in the past we|TODO|FIXME|XXX)\b', re.I)
STATE = re.compile(r'(?:->|\.)(phase|status)\s*=[^=]')
FILE_LINES, FUNCTION_LINES, COMMENT_LINES = 800, 100, 12


def calls(text, names):
    for match in re.finditer(r'(?<![\w.>])(%s)\s*\(' % '|'.join(names), text):
        yield text.count('\n', 0, match.start()) + 1, match.group(1)


def functions(text):
    """(line, length) of every brace block that starts in column 0."""
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if line == '{':
            start = number
        elif line == '}' and start is not None:
            yield start, number - start
            start = None


def check_calls(path, text, findings):
    for line, name in calls(text, ANYWHERE):
        findings.append(f'{path}:{line}: {name}() is banned')
    if not path.startswith('controller/sys/'):
        for line, name in calls(text, CLOCKS):
            findings.append(f'{path}:{line}: {name}() outside controller/sys')
    if path != 'controller/base/mem.c':
        for line, name in calls(text, MEMORY):
            findings.append(f'{path}:{line}: {name}() outside controller/base/mem.c')


def is_incident(text, match):
    """The variable before the arrow is an incident: that is what the core calls it."""
    before = text[max(0, match.start() - 24):match.start()]
    return re.search(r'\b(incident|inc|other|observer|wide|narrow)$', before) is not None


def main():
    findings = []
    for path in tree.files('.c', '.h'):
        raw = tree.read(path)
        text = tree.code(raw)
        if not path.startswith('tests/'):
            check_calls(path, text, findings)
        if path.startswith('remediation/') and path not in ('remediation/fsm.c', 'remediation/incident_json.c'):
            for match in STATE.finditer(text):
                if is_incident(text, match):
                    line = text.count('\n', 0, match.start()) + 1
                    findings.append(f'{path}:{line}: only fsm.c writes phase and status of an incident')
        if raw.count('\n') > FILE_LINES:
            findings.append(f'{path}: {raw.count(chr(10))} lines; {FILE_LINES} at most')
        for line, length in functions(text):
            if length > FUNCTION_LINES and not path.startswith('tests/'):
                findings.append(f'{path}:{line}: a function of {length} lines; {FUNCTION_LINES} at most')
        for line, comment in tree.comments(raw):
            if HISTORY.search(comment):
                findings.append(f'{path}:{line}: a comment tells history or plans: {comment.strip()[:80]}')
            if comment.count('\n') >= COMMENT_LINES and line > 1:
                findings.append(f'{path}:{line}: a comment of {comment.count(chr(10)) + 1} lines')
    tree.end(findings, 'code')


main()
