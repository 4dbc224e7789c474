# SPDX-License-Identifier: BSD-2-Clause
"""html.parser: a loop of methods and regular expressions with many small callbacks."""

import html
from html.parser import HTMLParser


class Outline(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=False)
        self.depth = 0
        self.deepest = 0
        self.text = []

    def handle_starttag(self, tag, attrs):
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)

    def handle_endtag(self, tag):
        self.depth -= 1

    def handle_data(self, data):
        self.text.append(data)

    def handle_entityref(self, name):
        self.text.append(html.unescape("&%s;" % name))

    def handle_charref(self, name):
        self.text.append(html.unescape("&#%s;" % name))

    def handle_comment(self, data):
        self.text.append("")


def page(rows):
    row = ('<tr class="%d" id=r><td>cell &amp; &#233;</td><td><!-- c --><a href="?a=1&amp;b">x</a>'
           "<br/></td></tr>\n")
    return ("<!DOCTYPE html><html><body><table>" + "".join(row % i for i in range(rows)) +
            "</table><script>if (a < b) {}</script></body></html>")


def main(rounds=2):
    for _ in range(rounds):
        parser = Outline()
        source = page(450)
        for start in range(0, len(source), 4096):
            parser.feed(source[start:start + 4096])
        parser.close()
        assert parser.deepest == 6 and "".join(parser.text).count("cell & \xe9") == 450
        assert html.unescape(html.escape(source[:500], quote=True)) == source[:500]
