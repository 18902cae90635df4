"""What every lint shares: the files of the project, C without its comments and strings, and how findings are told."""
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
NOT_OURS = {'LICENSE', 'COPYING.GPL-3'}


def files(*suffixes):
    """Paths below the root, with one of the suffixes (all when none is given): what git tracks or would track."""
    listed = subprocess.run(['git', '-C', ROOT, '-c', 'safe.directory=*', 'ls-files', '-co', '--exclude-standard', '-z'],
                            stdout=subprocess.PIPE, check=True).stdout.decode().split('\0')
    names = sorted({name for name in listed if name and os.path.isfile(os.path.join(ROOT, name))} - NOT_OURS)
    return [name for name in names if not suffixes or name.endswith(suffixes)]


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8', errors='replace') as file:
        return file.read()


C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_of(text):
    """C with comments and the insides of strings blanked; lines keep their numbers."""
    def blank(match):
        token = match.group(0)
        kept = re.sub(r'[^\n]', ' ', token)
        return kept if token.startswith('/') else token[0] + kept[1:-1] + token[-1]
    return C_TOKEN.sub(blank, text)


def comments_of(text):
    """(line number, text) of each comment of a C file."""
    for match in C_TOKEN.finditer(text):
        if match.group(0).startswith('/'):
            yield text.count('\n', 0, match.start()) + 1, match.group(0)


def line_of(text, place):
    return text.count('\n', 0, place) + 1


def table(document, marker):
    """Rows of the Markdown table between <!-- marker:begin --> and <!-- marker:end -->, as lists of cells."""
    begin, end = f'<!-- {marker}:begin -->', f'<!-- {marker}:end -->'
    text = read(document)
    if begin not in text or end not in text:
        sys.exit(f'{document}: there is no table between {begin} and {end}')
    lines = text.split(begin)[1].split(end)[0].strip().splitlines()
    return [[cell.strip() for cell in line.strip('|').split('|')] for line in lines[2:]]


def anchors(text):
    """Anchors of a Markdown document's headings, as they are linked to."""
    for line in text.splitlines():
        if line.startswith('#'):
            title = line.lstrip('#').strip().lower()
            yield re.sub(r'[^\w\- ]', '', title).replace(' ', '-')


def finish(findings, what):
    """Prints the findings and ends with 1 when there are any."""
    for finding in findings:
        print(finding)
    print(f'{what}: {len(findings)} findings')
    sys.exit(1 if findings else 0)
