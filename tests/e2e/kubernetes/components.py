"""Command lines and configuration files of the bench's programs, one function each."""
import base64
import json
import os

from .audit import POLICY

# Gang scheduling and one-domain placement by kube-scheduler itself, in place of Volcano's scheduler.
GATES = '--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true'

# token, user, groups. All but the last bypass RBAC or have the roles that Kubernetes itself gives them.
USERS = (('admin-token', 'admin', 'system:masters'), ('manager-token', 'system:kube-controller-manager', ''),
         ('scheduler-token', 'system:kube-scheduler', ''), ('kwok-token', 'kwok', 'system:masters'),
         ('volcano-token', 'volcano', 'system:masters'), ('jobset-token', 'jobset', 'system:masters'),
         ('operator-token', 'alice', 'system:masters'))


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def kubeconfig(bench, name, user):
    """A kubeconfig file; user is what its user entry holds. JSON is YAML too."""
    document = {'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'bench',
                'clusters': [{'name': 'bench', 'cluster': {'server': f'https://127.0.0.1:{bench.ports["api"]}',
                                                           'certificate-authority': bench.authority.certificate}}],
                'users': [{'name': 'bench', 'user': user}],
                'contexts': [{'name': 'bench', 'context': {'cluster': 'bench', 'user': 'bench', 'namespace': 'default'}}]}
    path = write(os.path.join(bench.folder, name + '.kubeconfig'), json.dumps(document, indent=1))
    os.chmod(path, 0o600)
    return path


def etcd(bench):
    client, peer = (f'http://127.0.0.1:{bench.ports[name]}' for name in ('etcd', 'etcd-peer'))
    return [bench.binary('etcd'), '--name=bench', '--data-dir=' + bench.folder + '/etcd', '--unsafe-no-fsync',
            '--listen-client-urls=' + client, '--advertise-client-urls=' + client, '--listen-peer-urls=' + peer,
            '--initial-advertise-peer-urls=' + peer, '--initial-cluster=bench=' + peer, '--logger=zap', '--log-level=warn']


def apiserver(bench):
    pki = bench.authority
    tokens = write(pki.path('tokens.csv'), ''.join(f'{token},{user},{user},"{groups}"\n' for token, user, groups in USERS))
    policy = write(bench.folder + '/audit-policy.yaml', POLICY.format(users=f'"{bench.product}"'))
    seconds = bench.eviction_after_s
    return [bench.binary('kube-apiserver'), f'--etcd-servers=http://127.0.0.1:{bench.ports["etcd"]}',
            '--bind-address=127.0.0.1', '--advertise-address=127.0.0.1', f'--secure-port={bench.ports["api"]}',
            '--endpoint-reconciler-type=none', '--tls-cert-file=' + pki.path('serving.crt'),
            '--tls-private-key-file=' + pki.path('serving.key'), '--client-ca-file=' + pki.certificate,
            '--requestheader-client-ca-file=' + pki.certificate, '--requestheader-allowed-names=front-proxy',
            '--requestheader-username-headers=X-Remote-User', '--requestheader-group-headers=X-Remote-Group',
            '--requestheader-extra-headers-prefix=X-Remote-Extra-', '--token-auth-file=' + tokens,
            '--authorization-mode=RBAC', '--service-account-issuer=https://kubernetes.default.svc',
            '--service-account-key-file=' + pki.path('accounts.pub'),
            '--service-account-signing-key-file=' + pki.path('accounts.key'), '--service-cluster-ip-range=10.96.0.0/16',
            '--audit-policy-file=' + policy, '--audit-log-path=' + bench.audit.path,
            f'--default-unreachable-toleration-seconds={seconds}', f'--default-not-ready-toleration-seconds={seconds}',
            '--profiling=false', '--runtime-config=scheduling.k8s.io/v1alpha2=true', GATES]


def controller_manager(bench):
    config = kubeconfig(bench, 'controller-manager', {'token': 'manager-token'})
    return [bench.binary('kube-controller-manager'), '--kubeconfig=' + config, '--authentication-kubeconfig=' + config,
            '--authorization-kubeconfig=' + config, '--leader-elect=false', '--kube-api-qps=500', '--kube-api-burst=1000',
            '--bind-address=127.0.0.1', f'--secure-port={bench.ports["manager"]}',
            # Without this most controllers are forbidden under RBAC, and nodes keep their not-ready taint.
            '--use-service-account-credentials=true',
            '--service-account-private-key-file=' + bench.authority.path('accounts.key'),
            '--root-ca-file=' + bench.authority.certificate, f'--node-monitor-grace-period={bench.node_grace_s}s',
            '--node-monitor-period=1s', '--profiling=false', GATES]


def scheduler(bench):
    config = kubeconfig(bench, 'scheduler', {'token': 'scheduler-token'})
    document = {'apiVersion': 'kubescheduler.config.k8s.io/v1', 'kind': 'KubeSchedulerConfiguration',
                'leaderElection': {'leaderElect': False},
                'clientConnection': {'kubeconfig': config, 'qps': 500, 'burst': 1000},
                'profiles': [{'schedulerName': 'default-scheduler'}, {'schedulerName': 'volcano'}]}
    file = write(bench.folder + '/scheduler.yaml', json.dumps(document))
    return [bench.binary('kube-scheduler'), '--config=' + file, '--authentication-kubeconfig=' + config,
            '--authorization-kubeconfig=' + config, '--bind-address=127.0.0.1',
            f'--secure-port={bench.ports["scheduler"]}', GATES]


def kwok(bench):
    config = kubeconfig(bench, 'kwok', {'token': 'kwok-token'})
    stages = [f'--config={bench.share}/stages/{name}.yaml'
              for name in ('node-initialize', 'node-heartbeat-with-lease', 'pod-ready')]
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'stages.yaml')
    return [bench.binary('kwok'), '--kubeconfig=' + config, '--manage-nodes-with-label-selector=type=kwok',
            '--node-ip=127.0.0.1', '--cidr=10.244.0.0/16', f'--node-lease-duration-seconds={bench.node_lease_s}',
            f'--server-address=127.0.0.1:{bench.ports["kwok"]}', *stages, '--config=' + own]


def volcano(bench):
    return [bench.binary('volcano_standin'), '--kubeconfig=' + kubeconfig(bench, 'volcano', {'token': 'volcano-token'})]


def jobset(bench):
    """The command and the environment: its address of the API server comes by KUBECONFIG."""
    folder = os.path.join(bench.folder, 'jobset')
    os.makedirs(folder)
    for source, name in (('serving.crt', 'tls.crt'), ('serving.key', 'tls.key')):
        os.symlink(bench.authority.path(source), os.path.join(folder, name))
    document = {'apiVersion': 'config.jobset.x-k8s.io/v1alpha1', 'kind': 'Configuration',
                'leaderElection': {'leaderElect': False}, 'internalCertManagement': {'enable': False},
                'webhook': {'host': '127.0.0.1', 'port': bench.ports['jobset'], 'certDir': folder},
                'metrics': {'bindAddress': '0'},
                'health': {'healthProbeBindAddress': f'127.0.0.1:{bench.ports["jobset-health"]}'},
                'clientConnection': {'qps': 500, 'burst': 500}}
    file = write(bench.folder + '/jobset.yaml', json.dumps(document))
    return [bench.binary('jobset'), '--config=' + file], {'KUBECONFIG': kubeconfig(bench, 'jobset', {'token': 'jobset-token'})}


def jobset_webhooks(bench, documents):
    """The module's webhook configurations, answered on loopback in place of a Service; that for pods only sees its own."""
    with open(bench.authority.certificate, 'rb') as file:
        authority = base64.b64encode(file.read()).decode()
    for document in documents:
        document['metadata'] = {'name': 'jobset-' + document['metadata']['name']}
        for hook in document['webhooks']:
            path = hook['clientConfig']['service']['path']
            hook['clientConfig'] = {'url': f'https://127.0.0.1:{bench.ports["jobset"]}{path}', 'caBundle': authority}
            if hook['rules'][0]['resources'] == ['pods']:
                hook['objectSelector'] = {'matchExpressions': [{'key': 'jobset.sigs.k8s.io/jobset-name', 'operator': 'Exists'}]}
        yield document
