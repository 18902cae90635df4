#!/usr/bin/env python3
"""An incident's phase and status have one writer, remediation/fsm.c; reading it back from its JSON is the one other
way in."""
import re

import tree

WRITE = re.compile(r'(?:->|\.)(phase|status)\s*=(?!=)')
# what the core calls an incident
HOLDER = re.compile(r'\b(incident|inc|root|other|observer|wide|narrow|found|victim)$')
WRITERS = {'remediation/fsm.c', 'remediation/incident_json.c'}


def main():
    findings = []
    for path in tree.files('.c', '.h'):
        if not path.startswith('remediation/') or path in WRITERS:
            continue
        code = tree.code_of(tree.read(path))
        for match in WRITE.finditer(code):
            line = code[code.rfind('\n', 0, match.start()) + 1:code.find('\n', match.end())]
            if HOLDER.search(code[max(0, match.start() - 24):match.start()]):
                findings.append(f'{path}:{tree.line_of(code, match.start())}: writes an incident\'s {match.group(1)}: {line.strip()}')
    tree.finish(findings, 'writers of an incident\'s state')


main()
