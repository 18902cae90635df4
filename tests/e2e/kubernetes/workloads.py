"""Training jobs as people submit them; each pod takes a whole tray. Pods bear a spare that was promised to their job."""
from . import nodes

VOLCANO = '/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs'
JOBSET = '/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets'
BATCH = '/apis/batch/v1/namespaces/{}/jobs'
COMMAND = '/apis/bus.volcano.sh/v1alpha1/namespaces/{}/commands'
RESTART_ON_LOSS = ({'event': 'PodEvicted', 'action': 'RestartJob'}, {'event': 'PodFailed', 'action': 'RestartJob'})


def pod_template(job, namespace='default', gpus=nodes.GPUS, tolerates_spare=True, **labels):
    spec = {'restartPolicy': 'Never', 'terminationGracePeriodSeconds': 5,
            'containers': [{'name': 'train', 'image': 'registry.example/train:1',
                            'resources': {'limits': {'nvidia.com/gpu': str(gpus)}, 'requests': {'nvidia.com/gpu': str(gpus)}}}]}
    if tolerates_spare:
        spec['tolerations'] = [{'key': nodes.SPARE, 'operator': 'Equal', 'value': f'{namespace}.{job}', 'effect': 'NoSchedule'}]
    return {'metadata': {'labels': labels}, 'spec': spec} if labels else {'spec': spec}


def volcano_job(name, pods=16, namespace='default', policies=(), task_policies=(), max_retry=6, one_rack=True,
                partition_size=0, tolerates_spare=True):
    task = {'name': 'worker', 'replicas': pods, 'template': pod_template(name, namespace, tolerates_spare=tolerates_spare),
            'policies': list(task_policies)}
    spec = {'schedulerName': 'volcano', 'minAvailable': pods, 'queue': 'default', 'maxRetry': max_retry,
            'policies': list(policies), 'tasks': [task]}
    topology = {'mode': 'hard', 'highestTierAllowed': 1}
    if partition_size:
        task['partitionPolicy'] = {'totalPartitions': pods // partition_size, 'partitionSize': partition_size,
                                   'networkTopology': topology}
    elif one_rack:
        spec['networkTopology'] = topology
    return {'apiVersion': 'batch.volcano.sh/v1alpha1', 'kind': 'Job', 'metadata': {'name': name, 'namespace': namespace},
            'spec': spec}


def indexed_job(name, pods=16, namespace='default', tolerates_spare=True, **template_labels):
    """Fails as a whole when a pod fails; an eviction does not count as a failure."""
    return {'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': name, 'namespace': namespace},
            'spec': {'completionMode': 'Indexed', 'parallelism': pods, 'completions': pods, 'backoffLimit': 0,
                     'podReplacementPolicy': 'Failed',
                     'podFailurePolicy': {'rules': [{'action': 'Ignore', 'onPodConditions': [
                         {'type': 'DisruptionTarget', 'status': 'True'}]}]},
                     'template': pod_template(name, namespace, tolerates_spare=tolerates_spare, **template_labels)}}


def jobset(name, pods=16, namespace='default', max_restarts=6, one_rack=True, tolerates_spare=True):
    """One replicated job, one NVLink domain for itself where one_rack is true."""
    child = {'parallelism': pods, 'completions': pods, 'backoffLimit': 0,
             'podFailurePolicy': {'rules': [{'action': 'FailJob', 'onPodConditions': [
                 {'type': 'DisruptionTarget', 'status': 'True'}]}]},
             'template': pod_template(name, namespace, tolerates_spare=tolerates_spare)}
    metadata = {'name': name, 'namespace': namespace}
    if one_rack:
        metadata['annotations'] = {'alpha.jobset.sigs.k8s.io/exclusive-topology': nodes.CLIQUE_LABEL}
    rule = {'name': 'maintenance', 'action': 'RestartJobSetAndIgnoreMaxRestarts', 'onJobFailureReasons': ['PodFailurePolicy']}
    return {'apiVersion': 'jobset.x-k8s.io/v1alpha2', 'kind': 'JobSet', 'metadata': metadata,
            'spec': {'failurePolicy': {'maxRestarts': max_restarts, 'rules': [rule]},
                     'replicatedJobs': [{'name': 'worker', 'replicas': 1, 'template': {'spec': child}}]}}


def command(job, action='RestartJob', name=None, target_version='batch.volcano.sh/v1alpha1'):
    """What Volcano is told; job is the Job as the API server shows it."""
    namespace = job['metadata']['namespace']
    target = {'apiVersion': target_version, 'kind': 'Job', 'name': job['metadata']['name'], 'uid': job['metadata']['uid'],
              'controller': True}
    metadata = {'namespace': namespace, **({'name': name} if name else {'generateName': 'bench-'})}
    return {'apiVersion': 'bus.volcano.sh/v1alpha1', 'kind': 'Command', 'metadata': metadata, 'action': action,
            'target': target, 'reason': 'Bench', 'message': 'asked for by a test'}
