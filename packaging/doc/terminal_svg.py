# SPDX-License-Identifier: BSD-2-Clause
"""Draw a terminal's screen, as `tmux capture-pane -p -e` prints it, as SVG: text, bold, dim, reverse."""

import html
import re
import sys

CELL_WIDTH, CELL_HEIGHT, MARGIN = 7.8, 17, 10
INK, PAPER, FADED = "#d8dee9", "#1e222a", "#8a93a3"
SGR = re.compile("\x1b\\[([0-9;]*)m")


def runs(line, attributes):
    """Split a line into (column, text, attributes); attributes is a set, changed in place."""
    column = at = 0
    for match in [*SGR.finditer(line), None]:
        text = line[at:match.start() if match else len(line)]
        if text:
            yield column, text, frozenset(attributes)
        column += len(text)
        if match:
            at = match.end()
            for code in match.group(1).split(";"):
                if code in ("", "0"):
                    attributes.clear()
                elif code in ("1", "2", "7"):
                    attributes.add(code)


def draw(column, row, text, attributes):
    x = MARGIN + column * CELL_WIDTH
    y = MARGIN + row * CELL_HEIGHT
    width = len(text) * CELL_WIDTH
    ink = PAPER if "7" in attributes else FADED if "2" in attributes else INK
    if "7" in attributes:
        yield '<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>' % (
            x, y, width, CELL_HEIGHT, INK)
    if text.strip():
        yield '<text x="%.1f" y="%d" textLength="%.1f" fill="%s"%s xml:space="preserve">%s</text>' % (
            x, y + 13, width, ink, ' font-weight="bold"' if "1" in attributes else "",
            html.escape(text))


def main():
    lines = sys.stdin.read().rstrip("\n").split("\n")
    columns = max(len(SGR.sub("", line)) for line in lines)
    width = columns * CELL_WIDTH + 2 * MARGIN
    height = len(lines) * CELL_HEIGHT + 2 * MARGIN
    attributes = set()
    print('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
          'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13">' % (
              width, height, width, height))
    print('<rect width="100%%" height="100%%" rx="6" fill="%s"/>' % PAPER)
    for row, line in enumerate(lines):
        for run in runs(line, attributes):
            print("\n".join(draw(run[0], row, *run[1:])))
    print("</svg>")


if __name__ == "__main__":
    main()
