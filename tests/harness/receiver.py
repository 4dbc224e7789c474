#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A receiver of profiles for tests: checks and decodes what is pushed, and answers as it is told.

    receiver.py LOG [--tls CERT KEY] [--token TEXT] [--tenant ID] ANSWER...

Prints its port. Writes a line of JSON per request to LOG: id, kind, sums of the values, labels and
what was answered; "error" if anything is wrong with the request. Protobuf is decoded by the field
numbers of the published formats, without our .proto files.

ANSWER: one for each request, the last one for all that follow:
    200, 500, …    this status            429:N           with Retry-After: N
    slow:S         200 after S seconds    cut             close before the answer
    lost           accept, then close     garbage         no HTTP
    headers        headers without end    body            200, then a body without end
    gigabyte       200, announces 1 GiB   redirect:URL    302 to there
    partial        200, OTLP: 1 rejected  401             until the token is right: 200
"""
import gzip
import http.server
import json
import os
import re
import socketserver
import ssl
import sys
import threading
import time
import urllib.parse
import zlib

LIMIT = 64 << 20


def fields(data):
    """The fields of a message: (number, value or bytes)"""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value & (1 << 64) - 1
            if shift > 63:
                raise ValueError("varint")

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 1:
            yield tag >> 3, int.from_bytes(data[at:at + 8], "little")
            at += 8
        elif tag & 7 == 2:
            size = varint()
            if size > len(data) - at:
                raise ValueError("truncated")
            yield tag >> 3, data[at:at + size]
            at += size
        else:
            raise ValueError("wire type %d" % (tag & 7))


def packed(data):
    out = []
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            out.append(value)
            value = shift = 0
    return out


def all_of(message, number):
    return [v for n, v in fields(message) if n == number]


def one(message, number, default=None):
    found = all_of(message, number)
    return found[-1] if found else default


def decode_pprof(data):
    profile = gzip.decompress(data)
    strings = [s.decode() for s in all_of(profile, 6)]
    if strings[0] != "":
        raise ValueError("string 0")
    types = [strings[one(t, 1, 0)] for t in all_of(profile, 1)]
    functions = {one(f, 1): strings[one(f, 2, 0)] for f in all_of(profile, 5)}
    locations = {one(l, 1): functions[one(one(l, 4), 1)] for l in all_of(profile, 4)}
    sums = dict.fromkeys(types, 0)
    calls = {}
    for sample in all_of(profile, 2):
        values = packed(one(sample, 2))
        if len(values) != len(types):
            raise ValueError("values")
        for name, value in zip(types, values):
            sums[name] += value
        stack = [locations[i] for i in packed(one(sample, 1))]
        calls[stack[0]] = calls.get(stack[0], 0) + values[types.index("calls")]
    return sums, calls


def decode_multipart(headers, body):
    found = re.match("multipart/form-data; boundary=([-a-z0-9]+)$", headers["Content-Type"])
    pieces = body.split(b"--" + found.group(1).encode())
    if pieces[0] != b"" or pieces[-1] != b"--\r\n":
        raise ValueError("multipart")
    parts = {}
    for piece in pieces[1:-1]:
        head, content = piece.split(b"\r\n\r\n", 1)
        if not head.startswith(b"\r\n") or not content.endswith(b"\r\n"):
            raise ValueError("part")
        parts[re.search(rb'name="([^"]+)"', head).group(1).decode()] = content[:-2]
    return parts


def decode_pyroscope(path, headers, body):
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query, strict_parsing=True)
    name = re.match(r"([-A-Za-z0-9._/]+)\{([^{}]*)\}$", query["name"][0])
    labels = dict(pair.split("=") for pair in name.group(2).split(",") if pair)
    if not all(re.match("[a-zA-Z_][a-zA-Z0-9_]*$", label) for label in labels):
        raise ValueError("labels")
    if int(query["until"][0]) <= int(query["from"][0]):
        raise ValueError("times")
    parts = decode_multipart(headers, body)
    config = json.loads(parts["sample_type_config"])
    sums, calls = decode_pprof(parts["profile"])
    if set(config) != set(sums):
        raise ValueError("sample types")
    return {"service": name.group(1), "labels": labels, "sums": sums, "calls": calls}


def attribute(value):
    text = one(value, 1)
    return text.decode() if text is not None else one(value, 3, 0)


def decode_otlp(headers, body):
    if headers["Content-Type"] != "application/x-protobuf" or headers["Content-Encoding"] != "gzip":
        raise ValueError("type")
    request = zlib.decompress(body, 31)
    dictionary = one(request, 2)
    strings = [s.decode() for s in all_of(dictionary, 5)]
    functions = [strings[one(f, 1, 0)] for f in all_of(dictionary, 3)]
    # entry 0 of each table stands for "none"
    for number in (1, 2, 3, 4, 6, 7):
        if all_of(dictionary, number)[0] != b"":
            raise ValueError("entry 0 of table %d" % number)
    if strings[0] != "":
        raise ValueError("string 0")
    locations = [functions[one(one(l, 3), 1, 0)] if l else "" for l in all_of(dictionary, 2)]
    stacks = [packed(one(s, 1, b"")) for s in all_of(dictionary, 7)]
    resource = one(request, 1)
    labels = {one(a, 1).decode(): attribute(one(a, 2)) for a in all_of(one(resource, 1), 1)}
    sums, calls, ids = {}, {}, []
    for profile in all_of(one(resource, 2), 2):
        kind = strings[one(one(profile, 1), 1)]
        ids.append(one(profile, 7).hex())
        sums[kind] = 0
        for sample in all_of(profile, 2):
            value = sum(packed(one(sample, 4)))
            sums[kind] += value
            name = locations[stacks[one(sample, 1)][0]]
            if kind == "calls":
                calls[name] = calls.get(name, 0) + value
    if len(set(ids)) != 3:
        raise ValueError("profile ids")
    return {"service": labels["service.name"], "labels": labels, "sums": sums, "calls": calls,
            "profile_id": ids[0]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def check(self, body):
        options = self.server.options
        if options.tenant and self.headers["X-Scope-OrgID"] != options.tenant:
            raise ValueError("tenant %r" % self.headers["X-Scope-OrgID"])
        if self.path.startswith("/prefix"):
            self.path = self.path[len("/prefix"):]
        if self.path.startswith("/ingest?"):
            return decode_pyroscope(self.path, self.headers, body)
        if self.path == "/v1development/profiles":
            record = decode_otlp(self.headers, body)
            if record["profile_id"] != self.headers["Idempotency-Key"]:
                raise ValueError("id")
            return record
        raise ValueError("path %s" % self.path)

    def do_GET(self):
        self.server.record({"error": "GET: a redirect was followed"})
        self.send_error(405)

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        if size > LIMIT:
            raise ValueError("size")
        body = self.rfile.read(size)
        answer = self.server.next_answer()
        try:
            record = self.check(body)
        except (ValueError, KeyError, AttributeError, IndexError, TypeError, OSError) as e:
            record = {"error": "%s: %s" % (type(e).__name__, e)}
        token = self.server.options.token
        if token and self.headers["Authorization"] != token:
            answer = "401"
        record.update(id=self.headers["Idempotency-Key"], answer=answer)
        self.server.record(record)
        try:
            self.answer(answer)
        except OSError:
            self.close_connection = True

    def status(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def flood(self, head, piece):
        self.close_connection = True
        self.wfile.write(head)
        while True:
            self.wfile.write(piece)

    def answer(self, answer):
        what, _, value = answer.partition(":")
        if what == "429":
            self.status(429, b"slow down\n", Retry_After=value)
        elif what.isdigit():
            self.status(int(what), b"as told\n" if what != "200" else b"")
        elif what == "slow":
            time.sleep(float(value))
            self.status(200)
        elif what == "redirect":
            self.status(302, Location=value)
        elif what == "partial":
            self.status(200, b"\x0a\x06\x08\x01\x12\x02no")
        elif what == "garbage":
            self.close_connection = True
            self.wfile.write(bytes(range(256)) * 64)
        elif what == "headers":
            self.flood(b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"x" * 4000 + b"\r\n")
        elif what == "body":
            self.flood(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536)
        elif what == "gigabyte":
            self.flood(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", b"x" * 65536)
        else:
            self.close_connection = True  # cut, lost


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def __init__(self, options):
        super().__init__(("127.0.0.1", 0), Handler)
        self.options = options
        self.lock = threading.Lock()
        self.log = open(options.log, "a")
        if options.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*options.tls)
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request, client_address):
        pass  # connections that are cut or refuse the certificate

    def next_answer(self):
        with self.lock:
            answers = self.options.answers
            return answers.pop(0) if len(answers) > 1 else answers[0]

    def record(self, record):
        with self.lock:
            self.log.write(json.dumps(record) + "\n")
            self.log.flush()


def main():
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("log")
    parser.add_argument("--tls", nargs=2)
    parser.add_argument("--token")
    parser.add_argument("--tenant")
    parser.add_argument("answers", nargs="+")
    server = Server(parser.parse_args())
    print(server.server_address[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
