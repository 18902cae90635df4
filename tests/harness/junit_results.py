#!/usr/bin/env python3
"""Turns ctest's JUnit file into lines 'passed NAME', 'failed NAME', 'skipped NAME: why' for tests/run."""
import sys
import xml.etree.ElementTree as tree


def main(xml, log):
    try:
        cases = list(tree.parse(xml).getroot().iter('testcase'))
    except (OSError, tree.ParseError) as error:
        print(f'failed ctest: {error}')
        return
    if not cases:
        print('failed ctest: no case was run')
    for case in cases:
        name, output = case.get('name'), case.findtext('system-out') or ''
        if case.find('skipped') is not None and case.get('status') != 'fail':
            why = next((line for line in output.splitlines() if line.startswith('skipped')), 'did not run')
            print(f'skipped {name}: {why}')
        elif case.get('status') == 'run' and case.find('failure') is None:
            print(f'passed {name}')
        else:
            print(f'failed {name}')
            sys.stderr.write(f'FAILED {name}\n' + ''.join(f'    {line}\n' for line in output.splitlines()[-40:]))


main(*sys.argv[1:3])
