# SPDX-License-Identifier: BSD-2-Clause
"""json without its C accelerators: generators inside generators, closures, nonlocal recursion."""

import json
import json.decoder
import json.encoder
import json.scanner

json.encoder.c_make_encoder = None
json.encoder.encode_basestring_ascii = json.encoder.py_encode_basestring_ascii
json.decoder.scanstring = json.decoder.py_scanstring
json.scanner.make_scanner = json.scanner.py_make_scanner


class Point:
    def __init__(self, x):
        self.x = x


def default(value):
    return {"point": value.x}


def record(i):
    return {"id": i, "name": "item %d" % i, "tags": ["a", "b\n", u"\u00e9"], "ratio": i / 7,
            "nested": {"list": list(range(i % 9)), "none": None, "true": True},
            "point": Point(i)}


def main(rounds=4):
    for _ in range(rounds):
        text = json.dumps([record(i) for i in range(120)], default=default, indent=1,
                          sort_keys=True)
        back = json.JSONDecoder().decode(text)
        assert back[3]["point"] == {"point": 3} and back[8]["nested"]["list"] == list(range(8))
        assert len(list(json.JSONEncoder(default=default).iterencode(record(5)))) > 10
        try:
            json.JSONDecoder().decode(text[:-3])
        except ValueError:
            pass
