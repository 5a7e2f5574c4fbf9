# SPDX-License-Identifier: Apache-2.0
"""A client of the HTTP API (docs/api.md) for tests: whole answers, and event streams."""

import http.client
import json
import re
import socket
import time
import urllib.parse

from harness import PATIENCE, wait_until


class Api:
    """The API of one muster, found by the address that it prints, or at `url`."""

    def __init__(self, run, url=None):
        if url is None:
            found = wait_until(
                lambda: re.search(r"page (?:of this node alone )?(http://\S+/\?token=\w+)", run.err),
                "muster prints the address of its page",
            )
            url = found.group(1)
        self.url = url
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port = parts.hostname, parts.port
        self.token = parts.query.partition("=")[2]

    @property
    def bearer(self):
        return {"Authorization": "Bearer " + self.token}

    def ask(self, method, target, headers=None):
        """The answer: .status, .headers, .body; .json() of its body."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            connection.request(method, target, headers=headers or {})
            answer = connection.getresponse()
            answer.body = answer.read()
            answer.json = lambda: json.loads(answer.body)
            return answer
        finally:
            connection.close()

    def get(self, target, headers=None):
        return self.ask("GET", target, headers)

    def post(self, target, headers=None):
        return self.ask("POST", target, headers)

    def json(self, target):
        answer = self.get(target)
        assert answer.status == 200, (target, answer.status, answer.body)
        return answer.json()

    def stream(self, target, headers=None):
        return EventStream(self.host, self.port, target, headers or {})


class EventStream:
    """An event stream as a browser reads it. Each message is (event, id, data)."""

    def __init__(self, host, port, target, headers):
        self.socket = socket.create_connection((host, port), timeout=PATIENCE)
        lines = [f"GET {target} HTTP/1.1", f"Host: {host}:{port}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.answer = http.client.HTTPResponse(self.socket)
        self.answer.begin()
        self.status = self.answer.status
        self.last_id = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.answer.close()
        self.socket.close()

    def messages(self):
        """All messages until the stream ends. One that takes too long is an error."""
        deadline = time.monotonic() + PATIENCE
        message = {}
        while time.monotonic() < deadline:
            line = self.answer.readline()
            if not line:
                return
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if line != b"\n":
                message[name] = value
            elif "data" in message:
                self.last_id = message.get("id", self.last_id)
                yield message.get("event", ""), message.get("id", ""), json.loads(message["data"])
                deadline = time.monotonic() + PATIENCE
            if line == b"\n":
                message = {}
        raise AssertionError("the stream gave nothing for too long")

    def until(self, wanted):
        """The messages up to the first for which wanted(event, data) is true, with it."""
        seen = []
        for event, number, data in self.messages():
            seen.append((event, number, data))
            if wanted(event, data):
                return seen
        raise AssertionError(f"the stream ended without it: {[m[0] for m in seen]}")


class Known:
    """What a client of the event stream knows: rows, replaced as messages say."""

    def __init__(self):
        self.job = {}
        self.rows = {}
        self.events = []

    def take(self, event, data):
        if event not in ("state", "change"):
            return
        self.job = data.get("job", self.job)
        for kind, keys in (("nodes", ["id"]), ("attempts", ["attempt"]), ("ranks", ["attempt", "rank"])):
            for row in data[kind]:
                self.rows[(kind, *(row[key] for key in keys))] = row
        self.events += [row["seq"] for row in data["events"]]
