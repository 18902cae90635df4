#!/usr/bin/env python3
"""deploy/kubernetes as it is applied: every overlay renders, and each may do what its page says and no more."""
import os
import shutil
import subprocess
import tempfile

from daemon import BROOMD, ROOT, run, skip

try:
    import yaml
except ImportError:
    skip('python3-yaml is not installed')
if not shutil.which('kubectl'):
    skip('kubectl is not installed')

FOLDER = os.path.join(ROOT, 'deploy/kubernetes')
READS = {'get', 'list', 'watch'}
ACCOUNT = {'kind': 'ServiceAccount', 'name': 'broomd', 'namespace': 'broomwagon'}
# group/resource: verbs. What acting needs, and where its binding reaches.
WRITES_ON_NODES = {('/nodes', 'patch'), ('/nodes/status', 'patch')}
WRITES_ON_JOBS = {
    ('/pods/eviction', 'create'), ('/events', 'create'), ('bus.volcano.sh/commands', 'create'), ('bus.volcano.sh/commands', 'delete'),
    ('batch.volcano.sh/jobs', 'patch'),
    ('jobset.x-k8s.io/jobsets', 'patch'), ('batch/jobs', 'patch'), ('kubeflow.org/pytorchjobs', 'patch'),
    ('trainer.kubeflow.org/trainjobs', 'patch'), ('argoproj.io/workflows', 'patch')}
FORCE = {('/pods', 'delete')}


def render(folder):
    done = subprocess.run(['kubectl', 'kustomize', folder], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f'{folder}: {done.stderr}'
    return list(yaml.safe_load_all(done.stdout))


def of_kind(objects, *kinds):
    return [item for item in objects if item['kind'] in kinds]


def named(objects, kind, name):
    found = [item for item in of_kind(objects, kind) if item['metadata']['name'] == name]
    assert len(found) == 1, f'{len(found)} {kind} {name}'
    return found[0]


def rights(role):
    return {(f'{group}/{resource}', verb) for rule in role['rules'] for group in rule['apiGroups']
            for resource in rule['resources'] for verb in rule['verbs']}


def granted(objects):
    """{namespace, or '' for everywhere: rights} of broomd's account, by the bindings that are there."""
    found = {}
    for binding in of_kind(objects, 'ClusterRoleBinding', 'RoleBinding'):
        assert binding['subjects'] == [ACCOUNT], binding
        reference = binding['roleRef']
        namespace = binding['metadata'].get('namespace', '')
        assert (namespace == '') == (binding['kind'] == 'ClusterRoleBinding'), binding
        role = named(objects, reference['kind'], reference['name'])
        assert role['metadata'].get('namespace', namespace) == namespace, binding
        found.setdefault(namespace, set()).update(rights(role))
    return found


def writes(granted_rights):
    return {(resource, verb) for resource, verb in granted_rights if verb not in READS}


def config_map(objects, prefix):
    found = [item for item in of_kind(objects, 'ConfigMap') if item['metadata']['name'].rsplit('-', 1)[0] == prefix]
    assert len(found) == 1, f'{len(found)} ConfigMaps {prefix}'
    return found[0]


def pod_spec(objects):
    return named(objects, 'StatefulSet', 'broomd')['spec']['template']['spec']


def test_observe_reads_and_writes_nothing():
    found = granted(render(FOLDER + '/base'))
    assert set(found) == {''}, found
    assert not writes(found['']), writes(found[''])
    assert ('/nodes', 'watch') in found[''] and ('/pods', 'list') in found['']


def test_enforce_may_what_acting_needs_and_jobs_only_where_a_namespace_is_named():
    found = granted(render(FOLDER + '/enforce'))
    assert writes(found['']) == WRITES_ON_NODES, writes(found[''])
    assert set(found) == {'', 'default'} and writes(found['default']) == WRITES_ON_JOBS, found


def test_force_delete_adds_one_right():
    enforce, force = granted(render(FOLDER + '/enforce')), granted(render(FOLDER + '/force-delete'))
    assert force[''] == enforce['']
    assert force['default'] - enforce['default'] == FORCE and enforce['default'] < force['default']


def test_no_overlay_has_wildcards_secrets_or_ways_to_more_rights():
    for overlay in ('base', 'enforce', 'force-delete'):
        objects = render(f'{FOLDER}/{overlay}')
        assert not of_kind(objects, 'Secret'), overlay
        for role in of_kind(objects, 'Role', 'ClusterRole'):
            for rule in role['rules']:
                words = rule['apiGroups'] + rule['resources'] + rule['verbs']
                assert '*' not in words and 'secrets' not in words and 'pods/exec' not in words, (overlay, rule)
                assert not {'escalate', 'bind', 'impersonate', 'deletecollection', 'update'} & set(rule['verbs']), (overlay, rule)


def test_the_pod_is_as_restricted_as_its_namespace_asks():
    for overlay in ('base', 'enforce', 'force-delete'):
        objects = render(f'{FOLDER}/{overlay}')
        assert named(objects, 'Namespace', 'broomwagon')['metadata']['labels']['pod-security.kubernetes.io/enforce'] == 'restricted'
        pod = pod_spec(objects)
        container, = pod['containers']
        assert pod['securityContext']['runAsNonRoot'] and pod['securityContext']['runAsUser'] > 0
        assert pod['securityContext']['seccompProfile'] == {'type': 'RuntimeDefault'}
        assert container['securityContext'] == {'allowPrivilegeEscalation': False, 'readOnlyRootFilesystem': True,
                                                'capabilities': {'drop': ['ALL']}}
        assert not any('hostPath' in volume for volume in pod['volumes'])
        assert not any(pod.get(key) for key in ('hostNetwork', 'hostPID', 'hostIPC'))


def test_every_volume_is_mounted_and_every_mount_has_a_volume():
    for overlay in ('base', 'enforce', 'force-delete'):
        objects = render(f'{FOLDER}/{overlay}')
        pod = pod_spec(objects)
        claims = named(objects, 'StatefulSet', 'broomd')['spec']['volumeClaimTemplates']
        volumes = [volume['name'] for volume in pod['volumes']] + [claim['metadata']['name'] for claim in claims]
        mounts = [mount['name'] for mount in pod['containers'][0]['volumeMounts']]
        assert sorted(volumes) == sorted(mounts) and len(set(volumes)) == len(volumes), (overlay, volumes, mounts)
        maps = {item['metadata']['name'] for item in of_kind(objects, 'ConfigMap')}
        assert all(volume['configMap']['name'] in maps for volume in pod['volumes'] if 'configMap' in volume)


def test_each_overlay_mounts_the_policy_that_is_shipped_for_it():
    for overlay, prefix, shipped in (('base', 'broomd-policies', 'nvl72.yaml'),
                                     ('enforce', 'broomd-policies-enforce', 'nvl72-enforce.yaml')):
        objects = render(f'{FOLDER}/{overlay}')
        held = config_map(objects, prefix)
        mounted, = [volume for volume in pod_spec(objects)['volumes'] if volume['name'] == 'policies']
        assert mounted['configMap']['name'] == held['metadata']['name'], overlay
        with open(f'{ROOT}/deploy/policies/{shipped}', encoding='utf-8') as file:
            assert held['data'] == {shipped: file.read()}, overlay


def test_broomd_takes_the_configuration_that_each_overlay_mounts():
    for overlay in ('base', 'enforce', 'force-delete'):
        held = config_map(render(f'{FOLDER}/{overlay}'), 'broomd-config')
        with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
            file.write(held['data']['broomd.yaml'])
            file.flush()
            done = subprocess.run([BROOMD, '--config', file.name, '--check-config'], capture_output=True, text=True,
                                  timeout=30, check=False)
        assert done.returncode == 0, f'{overlay}: {done.stdout}{done.stderr}'


def test_what_is_not_named_may_not_be_spoken_to():
    objects = render(FOLDER + '/base')
    policies = {item['metadata']['name']: item['spec'] for item in of_kind(objects, 'NetworkPolicy')}
    assert policies.pop('broomd-default-deny') == {'podSelector': {}, 'policyTypes': ['Ingress', 'Egress']}
    ports = {name: [port['port'] for rules in (spec.get('ingress', []) + spec.get('egress', [])) for port in rules['ports']]
             for name, spec in policies.items()}
    assert ports == {'broomd-samples-in': ['api'], 'broomd-metrics-in': ['health'], 'broomd-names-out': [53, 53],
                     'broomd-apiserver-out': [443, 6443]}, ports
    assert all('from' in rule for spec in policies.values() for rule in spec.get('ingress', []))


def test_the_fields_of_nodes_are_held_for_the_account_that_may_patch_them():
    objects = render(FOLDER + '/enforce')
    policy = named(objects, 'ValidatingAdmissionPolicy', 'broomd-node-fields')['spec']
    assert policy['matchConstraints']['resourceRules'][0]['resources'] == ['nodes', 'nodes/status']
    user = f"system:serviceaccount:{ACCOUNT['namespace']}:{ACCOUNT['name']}"
    assert [condition['expression'] for condition in policy['matchConditions']] == [f"request.userInfo.username == '{user}'"]
    binding = named(objects, 'ValidatingAdmissionPolicyBinding', 'broomd-node-fields')['spec']
    assert binding == {'policyName': 'broomd-node-fields', 'validationActions': ['Deny']}


def test_a_site_can_use_its_own_database_and_its_own_namespaces():
    with tempfile.TemporaryDirectory() as folder:
        near = os.path.relpath(FOLDER, os.path.realpath(folder))
        with open(folder + '/kustomization.yaml', 'w', encoding='utf-8') as file:
            file.write(f'resources: [{near}/enforce, team]\ncomponents: [{near}/external-database]\n'
                       'images: [{name: broomwagon, newName: registry.example.com/broomwagon, newTag: "1"}]\n')
        os.mkdir(folder + '/team')
        with open(folder + '/team/kustomization.yaml', 'w', encoding='utf-8') as file:
            file.write(f'namespace: team-a\nresources: [../{near}/training-namespace]\n')
        objects = render(folder)
    container, = pod_spec(objects)['containers']
    assert container['image'] == 'registry.example.com/broomwagon:1'
    assert container['args'][-2:] == ['--database', '$(BROOM_DATABASE)']
    assert {item['name'] for item in container['env']} == {'BROOM_DATABASE', 'PGPASSWORD'}
    assert writes(granted(objects)['team-a']) == WRITES_ON_JOBS


if __name__ == '__main__':
    run([test_observe_reads_and_writes_nothing,
         test_enforce_may_what_acting_needs_and_jobs_only_where_a_namespace_is_named, test_force_delete_adds_one_right,
         test_no_overlay_has_wildcards_secrets_or_ways_to_more_rights,
         test_the_pod_is_as_restricted_as_its_namespace_asks,
         test_every_volume_is_mounted_and_every_mount_has_a_volume,
         test_each_overlay_mounts_the_policy_that_is_shipped_for_it,
         test_broomd_takes_the_configuration_that_each_overlay_mounts,
         test_what_is_not_named_may_not_be_spoken_to,
         test_the_fields_of_nodes_are_held_for_the_account_that_may_patch_them,
         test_a_site_can_use_its_own_database_and_its_own_namespaces])
