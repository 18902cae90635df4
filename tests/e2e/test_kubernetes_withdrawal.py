#!/usr/bin/env python3
"""Volcano's job controller stands still while broomd restarts a job (kubernetes/README.md: it is a stand-in of ours). The Command
that it did not take is withdrawn, so that it does not restart the job when it is back."""
from daemon import run, wait_for
from kubernetes import scene
from kubernetes.cluster import Cluster
from kubernetes.scene import Scene, never
from kubernetes.workloads import volcano_job

LATE_S = 5          # a job is restarted 0.7 s after its Command was made
cluster = None


class ShortScene(Scene):
    """The restart has so much time."""

    def __init__(self, *arguments, restart_timeout, **more):
        self.restart_timeout = restart_timeout
        super().__init__(*arguments, **more)

    def start_broomd(self):
        usual = scene.POLICY
        assert 'restart_job: {{timeout: 3m,' in usual
        scene.POLICY = usual.replace('restart_job: {{timeout: 3m,', f'restart_job: {{{{timeout: {self.restart_timeout},')
        try:
            super().start_broomd()
        finally:
            scene.POLICY = usual


def uids():
    return {pod['metadata']['uid'] for pod in cluster.pods('train')}


def test_a_command_that_nobody_took_is_withdrawn_and_restarts_nothing_later():
    with ShortScene(cluster, volcano_job('train', 16), restart_timeout='12s') as here:
        before = uids()
        cluster.freeze('volcano')
        here.training.tray_dies(sorted(here.used())[0])
        wait_for('the Command lies there', cluster.commands, 60)
        ended = wait_for('people are asked', lambda: [each for each in here.incidents() if each['phase'] == 'escalated'], 100, 0.5)
        assert len(ended) == 1, ended
        said = here.timeline()
        assert 'the job controller took no Command within' in said and '(is it up?): withdrawn' in said, said[-3000:]
        assert not cluster.commands(), 'a Command was left behind'
        writes = here.writes()
        assert writes['create', 'commands'] == writes['delete', 'commands'] >= 1, writes
        cluster.thaw('volcano')
        never('the job was restarted late', lambda: cluster.commands() or uids() != before, LATE_S)
        assert cluster.volcano_status('train').get('retryCount', 0) == 0 and uids() == before
        assert here.writes()['create', 'commands'] == writes['create', 'commands'], 'it was asked for again'


def test_a_broomd_that_was_killed_meanwhile_follows_its_command_and_makes_no_other():
    with ShortScene(cluster, volcano_job('train', 16), restart_timeout='3m') as here:
        cluster.freeze('volcano')
        here.training.tray_dies(sorted(here.used())[0])
        command, = wait_for('the Command lies there', cluster.commands, 60)
        here.daemon.kill()
        here.daemon.start()
        wait_for('it follows the Command again', lambda: 'started under the same id' in here.timeline(), 60, 1)
        wait_for('the incident says what it waits for', lambda: f'Command default/{command}, which lies untouched' in here.show(), 30, 1)
        cluster.thaw('volcano')
        here.wait_mitigated()
        assert cluster.volcano_status('train')['retryCount'] == 1
        writes = here.writes()
        assert writes['create', 'commands'] == 1 and writes['delete', 'commands'] == 0, writes


if __name__ == '__main__':
    with Cluster(racks=2, spare_racks=1, spares_per_rack=2, with_jobset=False) as cluster:
        cluster.grant('enforce')
        run([test_a_command_that_nobody_took_is_withdrawn_and_restarts_nothing_later,
             test_a_broomd_that_was_killed_meanwhile_follows_its_command_and_makes_no_other])
