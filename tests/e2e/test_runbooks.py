#!/usr/bin/env python3
"""Every broom and broomd command that a runbook tells a person to type is one that these programs take."""
import glob
import os
import re
import shlex
import subprocess
import tempfile

from daemon import BROOM, BROOMD, ROOT, run

EXIT_USAGE, EXIT_UNREACHABLE, EXIT_TIMED_OUT = 2, 6, 8
COMMAND = re.compile(r'^\$ (broomd? [^#\n]*)|`(broomd? [^`]*)`', re.MULTILINE)
LOCAL = ('policy', 'detect', 'rehearse', 'replay')     # need a file that is not there, or minutes


def commands():
    """(page, words) of each, once a page; placeholders stand for themselves."""
    for path in sorted(glob.glob(ROOT + '/runbooks/*.md')):
        with open(path, encoding='utf-8') as file:
            found = {typed or quoted for typed, quoted in COMMAND.findall(file.read())}
        for text in sorted(found):
            yield os.path.basename(path), shlex.split(text)


def test_commands_are_understood():
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        for page, words in commands():
            stand_ins = {'FILE': folder + '/FILE', 'INC-3.tar': folder + '/INC-3.tar', '30m': '1s'}
            words = [stand_ins.get(word, word) for word in words]
            program, rest = (BROOM if words[0] == 'broom' else BROOMD), words[1:]
            if words[0] == 'broom' and rest[0] not in LOCAL:
                rest += ['--server', f'unix:{folder}/nobody.sock']
            done = subprocess.run([program, *rest], capture_output=True, text=True, timeout=30, check=False)
            if '--server' in rest:
                wanted = done.returncode in (EXIT_UNREACHABLE, EXIT_TIMED_OUT)
            else:
                wanted = done.returncode != EXIT_USAGE
            assert wanted, f'{page}: {" ".join(words)}: exit {done.returncode}, {done.stderr}'
            tried += 1
    assert tried > 30, f'only {tried} commands were found'


def test_pages_name_views_that_exist():
    """A query that a person is told to type reads from broom_api only."""
    with open(ROOT + '/schema/004_api.sql', encoding='utf-8') as file:
        schema = file.read()
    for path in glob.glob(ROOT + '/runbooks/*.md'):
        with open(path, encoding='utf-8') as file:
            for view in re.findall(r'from (broom_api\.\w+)', file.read()):
                assert re.search(rf'VIEW {re.escape(view)}\b', schema), f'{os.path.basename(path)}: there is no {view}'


if __name__ == '__main__':
    run([test_commands_are_understood, test_pages_name_views_that_exist])
