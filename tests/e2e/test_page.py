#!/usr/bin/env python3
"""The page in a real browser: what an on-call reads on it, with nothing wrong and with an incident."""
import html
import re
import shutil
import subprocess
import tempfile
import time

from daemon import Daemon, run, skip, wait_for

BROWSER = shutil.which('chromium-headless-shell') or shutil.which('chromium')
NODES = ['gb-1', 'gb-2']
JOB = 'default/x'


def browse(*options):
    """What the browser printed, and what the page's script complained of."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run([BROWSER, '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
                               f'--user-data-dir={profile}', '--enable-logging=stderr', '--virtual-time-budget=5000', *options,
                               f'http://127.0.0.1:{daemon.port}/'], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if 'CONSOLE' in line]


def read_page():
    """The words that a person sees."""
    dom, complaints = browse('--dump-dom')
    assert not complaints, complaints
    body = re.sub(r'<(script|style)\b.*?</\1>', '', dom[dom.index('<main'):], flags=re.S)
    words = ' '.join(html.unescape(re.sub(r'<[^>]*>', ' ', body)).split())
    for mistake in ['undefined', 'NaN', '[object', 'null']:
        assert mistake not in words, (mistake, words)
    return dom, words


def step_on(steps):
    for step in steps:
        daemon.write(''.join(f'step,job={JOB},rank={rank} step={step}i,step_ms=100,compute_ms=80,allreduce_ms=10 '
                             f'{time.time_ns()}\n' for rank in range(8)))


def test_nothing_is_wrong():
    _, words = read_page()
    for sentence in ['No incident is open.', 'No job sends samples', 'No rack is known yet.', 'None.']:
        assert sentence in words, (sentence, words)


def test_a_job_and_its_trays_are_shown():
    daemon.write(''.join(f'hello,job={JOB},rank={rank} host="{NODES[rank // 4]}",gpu={rank % 4}i,world=8i,tp=4i,attempt=0i\n'
                         for rank in range(8)))
    step_on(range(1, 20))
    dom, words = read_page()
    assert JOB in words and all(node in words for node in NODES), words
    assert 'aria-label="gb-1, normal' in dom and 'All trays are as they should be.' in words, words


def test_an_incident_says_what_where_and_what_to_type():
    daemon.write(f'event,host=gb-1 kind="xid",code=79i {time.time_ns()}\n')
    incident = wait_for('there is an incident', lambda: next(iter(daemon.incidents()), None), 90)
    wait_for('it is no more a suspicion', lambda: daemon.incidents()[0]['phase'] != 'suspected', 90)
    dom, words = read_page()
    for sentence in [incident['ref'], 'tray gb-1', '1 node: gb-1', f"broom incidents show {incident['ref']}", 'Waiting for ']:
        assert sentence in words, (sentence, words)
    assert dom.index(incident['ref']) < dom.index('Past incidents')


def test_names_from_outside_stay_text():
    # A job name that is markup is as good as any other to the parser; to the page it is letters.
    code, text = daemon.write('hello,job=default/<b\\ id\\=evil>y,rank=0 host="gb-3",gpu=0i,world=1i,attempt=0i\n')
    assert code in (204, 400), (code, text)
    dom, _ = read_page()
    assert '<b id=' not in dom


def test_a_screenshot_can_be_taken():
    with tempfile.TemporaryDirectory() as folder:
        browse(f'--screenshot={folder}/page.png', '--window-size=1400,1000')
        with open(f'{folder}/page.png', 'rb') as file:
            picture = file.read()
    assert picture.startswith(b'\x89PNG') and len(picture) > 20000, len(picture)


if __name__ == '__main__':
    if BROWSER is None:
        skip('no headless Chromium')
    with Daemon('--set', 'detection.event_hold=0s') as daemon:
        run([test_nothing_is_wrong, test_a_job_and_its_trays_are_shown, test_an_incident_says_what_where_and_what_to_type,
             test_names_from_outside_stay_text, test_a_screenshot_can_be_taken])
