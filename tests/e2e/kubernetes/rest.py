"""The API server as a test talks to it: one JSON call at a time, as a user that is named by a bearer token."""
import http.client
import json
import ssl

PATCHES = {'merge': 'application/merge-patch+json', 'strategic': 'application/strategic-merge-patch+json',
           'json': 'application/json-patch+json', 'apply': 'application/apply-patch+yaml'}


class Rest:
    def __init__(self, port, ca_file):
        self.port = port
        self.context = ssl.create_default_context(cafile=ca_file)

    def call(self, method, path, body=None, token='admin-token', patch='merge', timeout_s=30):
        """(code, document); code 0 when nobody answered. A body that is no string is sent as JSON."""
        headers = {'Authorization': 'Bearer ' + token, 'User-Agent': 'bench/1', 'Accept': 'application/json'}
        if body is not None:
            headers['Content-Type'] = PATCHES[patch] if method == 'PATCH' else 'application/json'
            body = body if isinstance(body, str) else json.dumps(body)
        connection = http.client.HTTPSConnection('127.0.0.1', self.port, context=self.context, timeout=timeout_s)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors='replace')
        except (OSError, http.client.HTTPException):
            return 0, {}
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text) if text else {}
        except ValueError:
            return answer.status, {'text': text}


def must(answer, *codes):
    """The document of an answer whose code is one of these (any 2xx when none is given)."""
    code, document = answer
    expected = code in codes if codes else 200 <= code < 300
    assert expected, f'HTTP {code}: {document.get("reason")}: {document.get("message", str(document)[:300])}'
    return document
