# SPDX-License-Identifier: BSD-2-Clause
"""Forward HTTP requests to a server, but cut off the first answers of inserts into a table: the server
has stored the rows, and the client does not know it. Arguments: the server's port, the number of
answers, the table. Prints its own port.

With a fourth argument, a number N, inserts after the first N are refused instead, as if a row were damaged;
the server does not get them."""

import http.client
import http.server
import sys

server, cut, table = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
forward = int(sys.argv[4]) if len(sys.argv) > 4 else None
REFUSAL = b"Code: 27, e.displayText() = DB::Exception: Cannot parse input"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        global cut
        body = self.rfile.read(int(self.headers["Content-Length"]))
        chosen = "query=INSERT" in self.path and table in self.path and cut > 0
        if chosen and forward is not None and self.refuse():
            return
        conn = http.client.HTTPConnection("127.0.0.1", server)
        coding = self.headers["Content-Encoding"]
        conn.request("POST", self.path, body, {"Content-Encoding": coding} if coding else {})
        answer = conn.getresponse()
        data = answer.read()
        if chosen and forward is None:
            cut -= 1
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self):
        global cut, forward
        forward -= 1
        if forward >= 0:
            return False
        cut -= 1
        self.send_response(400)
        self.send_header("Content-Length", str(len(REFUSAL)))
        self.end_headers()
        self.wfile.write(REFUSAL)
        return True

    def log_message(self, *args):
        pass


httpd = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(httpd.server_port, flush=True)
httpd.serve_forever()
