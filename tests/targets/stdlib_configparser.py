# SPDX-License-Identifier: BSD-2-Clause
"""configparser: ABCs, chained mappings, interpolation by recursion."""

import configparser
import io


def text(sections):
    lines = ["[common]", "home = /srv", "name = x"]
    for i in range(sections):
        lines += ["[s%d]" % i, "number = %d" % i, "flag = yes", "path = ${common:home}/${number}",
                  "deep = ${path}/${common:name}", "long = a", "  b", "# comment", "ratio: 1.5", ""]
    return "\n".join(lines)


def main(rounds=4):
    for _ in range(rounds):
        config = configparser.ConfigParser(interpolation=configparser.ExtendedInterpolation())
        config.read_string(text(90))
        for i in range(90):
            section = config["s%d" % i]
            assert section.getint("number") == i and section.getboolean("flag")
            assert section["deep"] == "/srv/%d/x" % i and section.getfloat("ratio") == 1.5
            assert section.get("absent", fallback="none") == "none"
            assert "flag" in section and len(list(section)) == 6
        config.remove_section("s3")
        out = io.StringIO()
        config.write(out)
        try:
            config.get("s3", "number")
        except configparser.NoSectionError:
            pass
