"""The API server's own record of who asked for what. It is written as the requests end; a count may be asked for as soon as
the effect of a request was seen, so ask again for a moment before you believe that something is missing."""
import collections
import json

WRITES = ('create', 'update', 'patch', 'delete', 'deletecollection')

# Renewals of leases by the stand-in kubelets would be most of the file.
POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [kwok]
- level: Metadata
  users: [{users}]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
"""

Entry = collections.namedtuple('Entry', 'time user verb resource namespace name code agent')


class AuditLog:
    def __init__(self, path):
        self.path = path

    def mark(self):
        """A place in the log: what comes after it is what happened from here on."""
        try:
            with open(self.path, 'rb') as file:
                return file.seek(0, 2)
        except FileNotFoundError:
            return 0

    def entries(self, user=None, since=0):
        """One Entry a request, in order. resource names its subresource: pods/eviction. A watch counts once it has begun."""
        seen, found = set(), []
        with open(self.path, 'rb') as file:
            file.seek(since)
            for line in file:
                if not line.endswith(b'\n'):
                    break
                event = json.loads(line)
                if event['auditID'] in seen or (user and event['user'].get('username') != user):
                    continue
                seen.add(event['auditID'])
                target = event.get('objectRef', {})
                resource = '/'.join(filter(None, (target.get('resource', event.get('requestURI')), target.get('subresource'))))
                found.append(Entry(event['requestReceivedTimestamp'], event['user'].get('username'), event['verb'], resource,
                                   target.get('namespace'), target.get('name'), event.get('responseStatus', {}).get('code', 0),
                                   event.get('userAgent', '')))
        return found

    def writes(self, user, since=0):
        """Everything that the user tried to change, refused or not."""
        return [entry for entry in self.entries(user, since) if entry.verb in WRITES]

    def counts(self, user, since=0):
        """How often each (verb, resource) was asked for."""
        return collections.Counter((entry.verb, entry.resource) for entry in self.entries(user, since))

    def write_counts(self, user, since=0, accepted_only=True):
        return collections.Counter((entry.verb, entry.resource) for entry in self.writes(user, since)
                                   if not accepted_only or 200 <= entry.code < 300)
