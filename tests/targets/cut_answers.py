# SPDX-License-Identifier: BSD-2-Clause
"""Forward HTTP requests to a server, but cut off the first answers of inserts into a table: the server
has stored the rows, and the client does not know it. Arguments: the server's port, the number of
answers, the table. Prints its own port."""

import http.client
import http.server
import sys

server, cut, table = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        global cut
        body = self.rfile.read(int(self.headers["Content-Length"]))
        conn = http.client.HTTPConnection("127.0.0.1", server)
        coding = self.headers["Content-Encoding"]
        conn.request("POST", self.path, body, {"Content-Encoding": coding} if coding else {})
        answer = conn.getresponse()
        data = answer.read()
        if "query=INSERT" in self.path and table in self.path and cut > 0:
            cut -= 1
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


httpd = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(httpd.server_port, flush=True)
httpd.serve_forever()
