# SPDX-License-Identifier: BSD-2-Clause
"""Measurements over time: their growth, as CSV, and as a picture of small multiples: curves.py CSV SVG TITLE

A row is a dict with "seconds" and the columns of PANELS; a value may be None.
"""

import csv
import statistics
import sys

from soak import Failure

WARM = 0.3  # share of the time that is not compared: every kind of event has occurred by then
KINDS = ("gevent", "asyncio", "threads", "prefork")
USES = ("untraced", "sampled", "traced")  # of a server of each kind
MIB = 1024.0

# Allowed growth of the median between the first and the last third. None: not judged.
GROWTH = {
    "daemon_kib": 16384, "senders_kib": 8192, "descriptors": 64, "bpf_programs": 60, "bpf_maps": 150,
    "uprobes": 400, "kernel_kib": 32768, "percpu_kib": 65536, "slab_kib": None,
}

BLUE, ORANGE, GREY = "#1f5fa8", "#d9730d", "#8a929e"
OF_USE = {"untraced": GREY, "sampled": BLUE, "traced": ORANGE}


def latency_panel(kind, quantile):
    return ("%s: %s" % (kind, quantile), "ms", 1,
            [("%s_%s_%s_ms" % (kind, use, quantile), use, OF_USE[use]) for use in USES])


# title, unit, divisor, [(column, label, colour)]; a pair of panels is a line of the picture
PANELS = (
    ("resident memory of the daemon", "MiB", MIB, [("daemon_kib", "", BLUE)]),
    ("resident memory of its two senders", "MiB", MIB, [("senders_kib", "", BLUE)]),
    ("descriptors of the daemon", "", 1, [("descriptors", "", BLUE)]),
    ("BPF objects of the daemon", "", 1, [("bpf_maps", "maps", BLUE), ("bpf_programs", "programs", ORANGE)]),
    ("probed instructions", "", 1, [("uprobes", "", BLUE)]),
    ("kernel memory of the daemon's cgroup", "MiB", MIB, [("kernel_kib", "", BLUE)]),
    ("slab memory of the machine", "MiB", MIB, [("slab_kib", "", BLUE)]),
    ("per-CPU memory of the machine", "MiB", MIB, [("percpu_kib", "", BLUE)]),
    ("lost so far", "", 1, [("lost_intervals", "intervals", BLUE), ("lost_events", "events", ORANGE)]),
    ("intervals waiting for the receivers", "", 1, [("queued", "", BLUE)]),
    ("forks so far", "thousands", 1000.0, [("forks", "", BLUE)]),
    ("done so far", "thousands", 1000.0, [("operations", "commands", BLUE), ("sent", "intervals sent", ORANGE)]),
) + tuple(latency_panel(kind, quantile) for kind in KINDS for quantile in ("p50", "p99"))


def columns():
    return ["seconds"] + [column for panel in PANELS for column, _, _ in panel[3]]


def values(rows, column):
    return [r[column] for r in rows if r.get(column) is not None]


# -- growth --

def growth_of(rows, column):
    """Medians of the first and the last third; None: too few measurements."""
    found = values(rows[int(WARM * len(rows)):], column)
    third = len(found) // 3
    if third < 2:
        return None
    return statistics.median(found[:third]), statistics.median(found[-third:])


def check(rows, judged):
    for column, most in GROWTH.items():
        pair = growth_of(rows, column)
        if pair is None:
            print("%s: the run is too short to compare" % column)
            continue
        print("%-14s %9.0f, later %9.0f%s" % (
            column, *pair, "" if most is None else " (allowed: +%d)" % most))
        if judged and most is not None and pair[1] - pair[0] > most:
            raise Failure("%s grows: %s" % (column, values(rows, column)))


# -- files --

def write_csv(path, rows):
    with open(path, "w", newline="") as f:
        out = csv.DictWriter(f, columns(), extrasaction="ignore", restval="", lineterminator="\n")
        out.writeheader()
        for row in rows:
            out.writerow({k: "%.6g" % v for k, v in row.items() if v is not None})


WIDTH, HEIGHT = 330, 74         # of the area of a curve
LEFT, GAP, ABOVE = 46, 34, 26   # of it, between two, and above each


def number(v):
    return "%.0f" % v if v >= 100 or v == int(v) else "%.3g" % v


def points(rows, column, divisor, most):
    span = rows[-1]["seconds"] or 1
    return " ".join("%.1f,%.1f" % (WIDTH * r["seconds"] / span,
                                   HEIGHT * (1 - min(r[column] / divisor / most, 1)))
                    for r in rows if r.get(column) is not None)


def ceiling(highest):
    """The next larger number with one or two digits."""
    step = 1.0
    while step * 10 <= highest:
        step *= 10
    while step > highest and highest > 0:
        step /= 10
    return next((f * step for f in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if f * step >= highest), 1) or 1


def draw(out, rows, panel, x, y):
    title, unit, divisor, curves = panel
    most = ceiling(max([v / divisor for c, _, _ in curves for v in values(rows, c)] or [1]) or 1)
    out.append('<g transform="translate(%d %d)"><text y="-8" font-weight="bold">%s</text>' % (x, y, title))
    out.append('<rect width="%d" height="%d" fill="#f4f6f9"/><path d="M0 %.1fH%d" stroke="#d5dae1"/>' % (
        WIDTH, HEIGHT, HEIGHT / 2, WIDTH))
    for at, v in ((8, most), (HEIGHT / 2 + 4, most / 2), (HEIGHT, 0)):
        out.append('<text x="-5" y="%d" text-anchor="end" fill="#555">%s</text>' % (at, number(v)))
    labels = [(label, colour) for _, label, colour in curves if label]
    texts = ['<tspan fill="%s">%s</tspan>' % (colour, label) for label, colour in labels]
    out.append('<text x="%d" y="-8" text-anchor="end">%s%s</text>' % (
        WIDTH, " ".join(texts), ' <tspan fill="#555">%s</tspan>' % unit if unit else ""))
    for column, _, colour in curves:
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.3"/>' % (
            points(rows, column, divisor, most), colour))
    out.append("</g>")


def write_svg(path, rows, title):
    lines = (len(PANELS) + 1) // 2
    width, height = 2 * (LEFT + WIDTH + GAP), 34 + lines * (ABOVE + HEIGHT + 6) + 24
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">'
           % (width, height), '<rect width="100%" height="100%" fill="#fff"/>',
           '<text x="8" y="18" font-size="13">%s</text>' % title]
    for i, panel in enumerate(PANELS):
        draw(out, rows, panel, LEFT + i % 2 * (LEFT + WIDTH + GAP), 34 + ABOVE + i // 2 * (ABOVE + HEIGHT + 6) - 8)
    for side in 0, 1:
        x = LEFT + side * (LEFT + WIDTH + GAP)
        out.append('<text x="%d" y="%d" fill="#555">0</text><text x="%d" y="%d" text-anchor="end" fill="#555">'
                   '%.3g minutes</text>' % (x, height - 10, x + WIDTH, height - 10, rows[-1]["seconds"] / 60))
    with open(path, "w") as f:
        f.write("\n".join(out + ["</svg>"]) + "\n")


def read_csv(path):
    with open(path, newline="") as f:
        return [{k: float(v) if v else None for k, v in row.items()} for row in csv.DictReader(f)]


if __name__ == "__main__":
    write_svg(sys.argv[2], read_csv(sys.argv[1]), sys.argv[3])
