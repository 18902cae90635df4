"""GB300 NVL72 racks as Kubernetes shows them: 18 trays of four GPUs each, one NVLink clique a rack. Names are opaque, so that a
test notices a program that reads racks and trays out of them; nodes.name() is how a test finds a tray."""
import zlib

SPARE = 'broomwagon.io/spare'
RACK_LABEL = 'site.example/rack'
CLIQUE_LABEL = 'nvidia.com/gpu.clique'
GPUS = 4


def rack_name(rack):
    return f'rk-{zlib.crc32(f"rack {rack}".encode()):08x}'[:9]


def name(rack, tray):
    return f'gb-{zlib.crc32(f"rack {rack} tray {tray}".encode()):08x}'


def clique(rack):
    return f'7c1f64ab-59e2-4b0e-9d57-{zlib.crc32(f"domain {rack}".encode()):012x}.{rack}'


def realistic_weight():
    """What makes a node of a real cluster 30 kB: images, and annotations of everybody who runs a daemon there."""
    images = [{'names': [f'registry.example/team-{n % 7}/component-{n}@sha256:{zlib.crc32(bytes([n])):064x}',
                         f'registry.example/team-{n % 7}/component-{n}:v1.{n}.0-ubuntu24.04-cuda13'],
               'sizeBytes': 100000000 + n} for n in range(50)]
    annotations = {f'agent-{n}.example/state': 'x' * 400 for n in range(28)}
    return images, annotations


def node(rack, tray, spare=False, heavy=False, lifeless=False):
    resources = {'cpu': '144', 'memory': '960Gi', 'pods': '110', 'nvidia.com/gpu': str(GPUS)}
    document = {
        'apiVersion': 'v1', 'kind': 'Node',
        'metadata': {
            'name': name(rack, tray),
            'labels': {
                'kubernetes.io/hostname': name(rack, tray), 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64',
                'topology.kubernetes.io/region': 'bench', 'topology.kubernetes.io/zone': 'bench-a',
                RACK_LABEL: rack_name(rack), CLIQUE_LABEL: clique(rack),
                'nvidia.com/gpu.product': 'NVIDIA-GB300', 'nvidia.com/gpu.count': str(GPUS),
            },
            'annotations': {'kwok.x-k8s.io/node': 'fake', 'somebody.example/note': f'rack {rack}, tray {tray}'},
        },
        'spec': {'taints': [{'key': SPARE, 'effect': 'NoSchedule'}]} if spare else {},
        'status': {'capacity': resources, 'allocatable': resources},
    }
    if not lifeless:
        document['metadata']['labels']['type'] = 'kwok'
    if heavy:
        document['status']['images'], more = realistic_weight()
        document['metadata']['annotations'].update(more)
    return document


def hypernodes(racks):
    """Volcano's view of the same: a HyperNode of tier 1 for each rack, one of tier 2 over them."""
    def hypernode(title, tier, tier_name, members):
        return {'apiVersion': 'topology.volcano.sh/v1alpha1', 'kind': 'HyperNode', 'metadata': {'name': title},
                'spec': {'tier': tier, 'tierName': tier_name, 'members': members}}
    for rack in racks:
        selector = {'labelMatch': {'matchLabels': {CLIQUE_LABEL: clique(rack)}}}
        yield hypernode(rack_name(rack), 1, 'nvlink-domain', [{'type': 'Node', 'selector': selector}])
    yield hypernode('ib-pod', 2, 'ib-pod', [{'type': 'HyperNode', 'selector': {'exactMatch': {'name': rack_name(rack)}}}
                                            for rack in racks])
