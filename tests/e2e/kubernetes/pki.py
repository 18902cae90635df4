"""Keys and certificates of one bench, by openssl: an authority, a serving certificate for loopback, the key that signs the
tokens of service accounts, and client certificates on demand."""
import os
import subprocess

DAYS = '30'


def openssl(*arguments):
    done = subprocess.run(['openssl', *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f'openssl {" ".join(arguments)}: {done.stderr}'


class Authority:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, mode=0o700)
        self.certificate, self.key = self.path('ca.crt'), self.path('ca.key')
        openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-x509', '-days', DAYS,
                '-subj', '/CN=bench-ca', '-keyout', self.key, '-out', self.certificate)
        self.issue('serving', '/CN=kube-apiserver',
                   'subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc\nextendedKeyUsage=serverAuth\n')
        openssl('genrsa', '-out', self.path('accounts.key'), '2048')
        openssl('rsa', '-in', self.path('accounts.key'), '-pubout', '-out', self.path('accounts.pub'))

    def path(self, name):
        return os.path.join(self.folder, name)

    def issue(self, name, subject, extensions):
        """Writes NAME.crt and NAME.key and returns their paths."""
        certificate, key = self.path(name + '.crt'), self.path(name + '.key')
        request, extra = self.path(name + '.csr'), self.path(name + '.ext')
        with open(extra, 'w', encoding='utf-8') as file:
            file.write(extensions)
        openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', subject,
                '-keyout', key, '-out', request)
        openssl('x509', '-req', '-in', request, '-CA', self.certificate, '-CAkey', self.key, '-CAcreateserial',
                '-days', DAYS, '-extfile', extra, '-out', certificate)
        return certificate, key

    def issue_client(self, name, user):
        """A client certificate: the API server takes its CN for the user's name."""
        return self.issue(name, f'/CN={user}', 'extendedKeyUsage=clientAuth\n')
