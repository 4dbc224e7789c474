# SPDX-License-Identifier: BSD-2-Clause
"""email: the header value parser (deep recursion through small functions), MIME trees."""

import email
import email.policy
from email.message import EmailMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

RAW = """\
From: "A. Sender" <sender@example.org>
To: One <one@example.org>, "Two, B." <two@example.org>, Group: g1@example.org, g2@example.org;
Subject: =?utf-8?q?a_subject_with_=C3=A9?= and more
Date: Tue, 05 Mar 2024 10:20:30 +0100
Message-ID: <1@example.org>
Content-Type: text/plain; charset="utf-8"; format=flowed
Content-Transfer-Encoding: quoted-printable

Line one =C3=A9
Line two
"""


def parse():
    message = email.message_from_string(RAW, policy=email.policy.default)
    assert [a.addr_spec for a in message["to"].addresses][2] == "g1@example.org"
    assert message["subject"].endswith("and more") and message["date"].datetime.year == 2024
    assert message.get_content_charset() == "utf-8" and "two" in message.get_content()
    return message.as_string()


def compose(i):
    outer = MIMEMultipart(boundary="=== %d ===" % i)
    outer["Subject"] = "number %d" % i
    outer["From"] = "sender@example.org"
    for part in range(4):
        outer.attach(MIMEText("part %d\n" % part * 5, _charset="utf-8"))
    back = email.message_from_string(outer.as_string())
    assert len([p for p in back.walk()]) == 5


def modern(i):
    message = EmailMessage()
    message["Subject"] = "modern %d" % i
    message["To"] = "One <one@example.org>, two@example.org"
    message.set_content("body\n" * 3)
    assert b"modern" in message.as_bytes()


def main(rounds=8):
    for i in range(rounds):
        parse()
        compose(i)
        modern(i)
