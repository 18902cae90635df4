"""What tests ask a bench, and how they wait for an answer."""
import urllib.parse

from daemon import wait_for

from . import nodes, workloads

JOB_LABELS = ('volcano.sh/job-name', 'jobset.sigs.k8s.io/jobset-name', 'batch.kubernetes.io/job-name')


class Questions:
    # ---- nodes

    def node(self, name):
        return self.get('/api/v1/nodes/' + name)

    def nodes(self):
        """All nodes by name."""
        return {node['metadata']['name']: node for node in self.get('/api/v1/nodes')['items']}

    def nodes_are_settled(self):
        """Ready, and without a taint but that of the spares."""
        if self.lifeless:
            return True
        return all(is_ready(node) and {taint['key'] for taint in node['spec'].get('taints', [])} <= {nodes.SPARE}
                   for node in self.nodes().values())

    def cordoned(self):
        return {name for name, node in self.nodes().items() if node['spec'].get('unschedulable')}

    def is_ready(self, name):
        return is_ready(self.node(name))

    # ---- pods

    def pods(self, job, namespace='default'):
        """The pods of a job of any kind."""
        found = {}
        for label in JOB_LABELS:
            query = urllib.parse.urlencode({'labelSelector': f'{label}={job}'})
            for pod in self.get(f'/api/v1/namespaces/{namespace}/pods?{query}')['items']:
                found[pod['metadata']['uid']] = pod
        return list(found.values())

    def running(self, job, namespace='default'):
        """Pods that run: Running, and not on their way out."""
        return [pod for pod in self.pods(job, namespace)
                if pod['status'].get('phase') == 'Running' and 'deletionTimestamp' not in pod['metadata']]

    def running_of(self, job, namespace='default'):
        """Index -> (uid, node) of a job's running pods; None when the API server does not answer. One request: this is asked
        again and again."""
        code, answer = self.api('GET', f'/api/v1/namespaces/{namespace}/pods', timeout_s=2)
        if code != 200:
            return None
        return {pod_index(pod): (pod['metadata']['uid'], pod['spec']['nodeName']) for pod in answer['items']
                if job in [pod['metadata'].get('labels', {}).get(label) for label in JOB_LABELS]
                and pod['status'].get('phase') == 'Running' and 'deletionTimestamp' not in pod['metadata']}

    def stuck(self, job, namespace='default'):
        return [pod for pod in self.pods(job, namespace) if 'deletionTimestamp' in pod['metadata']]

    def placement(self, job, namespace='default'):
        """Index of each running pod -> its node."""
        return {pod_index(pod): pod['spec']['nodeName'] for pod in self.running(job, namespace)}

    def racks_of(self, job, namespace='default'):
        return {self.rack_of(node) for node in self.placement(job, namespace).values()}

    def uids(self, job, namespace='default'):
        return {pod['metadata']['uid'] for pod in self.running(job, namespace)}

    def wait_running(self, job, count, timeout_s=60, without=frozenset(), namespace='default'):
        """Waits until so many pods run, none of them of the uids in without; returns the uids."""
        def enough():
            uids = self.uids(job, namespace)
            return uids if len(uids) == count and not uids & without else None
        return wait_for(f'{count} pods of {job} run', enough, timeout_s)

    # ---- jobs

    def volcano_status(self, name, namespace='default'):
        return self.get(workloads.VOLCANO.format(namespace) + '/' + name).get('status', {})

    def wait_phase(self, name, phase, timeout_s=60, retries=0):
        """Waits for a Volcano job's phase after at least so many retries; returns its status."""
        def reached():
            status = self.volcano_status(name)
            return status if status.get('state', {}).get('phase') == phase and status.get('retryCount', 0) >= retries else None
        return wait_for(f'{name} is {phase} after {retries} retries', reached, timeout_s)

    def jobset_status(self, name, namespace='default'):
        return self.get(workloads.JOBSET.format(namespace) + '/' + name).get('status', {})

    def commands(self, namespace='default'):
        return [command['metadata']['name'] for command in self.get(workloads.COMMAND.format(namespace))['items']]


def is_ready(node):
    return any(condition['type'] == 'Ready' and condition['status'] == 'True'
               for condition in node['status'].get('conditions', []))


def pod_index(pod):
    labels, annotations = pod['metadata'].get('labels', {}), pod['metadata'].get('annotations', {})
    return int(labels.get('volcano.sh/task-index', annotations.get('batch.kubernetes.io/job-completion-index', -1)))
