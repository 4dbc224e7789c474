# SPDX-License-Identifier: BSD-2-Clause
"""The services of `make bench-service`. They count the calls of known functions.

A request is /items/N: it waits for a database (a sleep), loads N items, and answers with a page
that also contains them as JSON. This takes 600 to 3,000 calls of Python functions and 1 to 4 ms of
CPU time, a fifth to two fifths of it in score(), which calls nothing.

    gunicorn 'service_apps:flask_app()', 'service_apps:django_app()'
    python service_apps.py aiohttp SOCKET

BENCH_PROGRESS is a file of SLOTS numbers of 64 bits: calls of load_all, load_item and parse_field
so far, and the pid of the process that serves. CPython switches threads at calls and at jumps
backwards only, so none does between reading and writing such a number.
"""
import asyncio
import html
import json
import mmap
import os
import string
import sys
import time

SLOTS = 4
LOADS, ITEMS, FIELDS, PID = range(SLOTS)
MOST = 60  # items of a request
WAIT = 0.001
ROWS = ['name=Item %d;price=%d.5;stock=%d;weight=%d;seller=Number %d;tags=a,b,c' % (
    i, 10 + i, i % 7, 100 + i, i % 5) for i in range(MOST)]
# An item has 2 to 6 fields.
ROWS = [';'.join(row.split(';')[:2 + i % 5]) for i, row in enumerate(ROWS)]
FIELDS_OF = [sum(row.count('=') for row in ROWS[:n]) for n in range(MOST + 1)]


def open_progress(path):
    with open(path, 'r+b') as f:
        return memoryview(mmap.mmap(f.fileno(), 8 * SLOTS)).cast('Q')


progress = None  # in the bench itself
if 'BENCH_PROGRESS' in os.environ:
    progress = open_progress(os.environ['BENCH_PROGRESS'])


def parse_field(field):
    key, value = field.split('=')
    if key in ('price', 'weight'):
        return key, float(value)
    return key, value


def score(number):
    total = 0
    for i in range(220):
        total += i * number % 7
    return total


def describe(item):
    return ', '.join('%s: %s' % pair for pair in sorted(item.items()))


def load_item(number):
    item = {}
    for field in ROWS[number].split(';'):
        key, value = parse_field(field)
        item[key] = value
    item['score'] = str(score(number))
    if number % 3 == 0:
        item['description'] = describe({key: str(value) for key, value in item.items()})
    return item


def load_all(number):
    progress[LOADS] += 1
    progress[ITEMS] += number
    progress[FIELDS] += FIELDS_OF[number]
    items = []
    for i in range(number):
        items.append(load_item(i))
    return items


def total_price(items):
    return sum(item['price'] for item in items)


def answer(number, render):
    items = load_all(number)
    return render(items, total_price(items), json.dumps(items))


PAGE = string.Template('<html><ul>$rows</ul><p>$total</p><script>items = $json</script></html>')
TEMPLATE = """<html><ul>{% for item in items %}<li>{{ item.name }}: {{ item.price }}
{% if item.description %} ({{ item.description }}){% endif %}{% endfor %}</ul><p>{{ total }}</p>
<script>items = {{ json|safe }}</script></html>"""


def render_row(item):
    return '<li>%s: %.2f (%s)' % (html.escape(item['name']), item['price'],
                                  item.get('description', ''))


def render_page(items, total, as_json):
    rows = ''.join([render_row(item) for item in items])
    return PAGE.substitute(rows=rows, total=total, json=as_json)


def flask_app():
    import flask
    app = flask.Flask(__name__)
    template = app.jinja_env.from_string(TEMPLATE)

    @app.route('/items/<int:number>')
    def get_items(number):
        time.sleep(WAIT)
        return answer(number, lambda items, total, as_json: template.render(
            items=items, total=total, json=as_json))

    progress[PID] = os.getpid()
    return app


def django_app():
    import django
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse
    from django.template import Context, Engine
    from django.urls import path
    settings.configure(ALLOWED_HOSTS=['*'], ROOT_URLCONF=__name__, SECRET_KEY='none', MIDDLEWARE=[
        'django.middleware.security.SecurityMiddleware',
        'django.middleware.common.CommonMiddleware'])
    django.setup()
    template = Engine().from_string(TEMPLATE)

    def get_items(request, number):
        time.sleep(WAIT)
        return HttpResponse(answer(number, lambda items, total, as_json: template.render(
            Context({'items': items, 'total': total, 'json': as_json}))))

    globals()['urlpatterns'] = [path('items/<int:number>', get_items)]
    progress[PID] = os.getpid()
    return get_wsgi_application()


def serve_aiohttp(socket):
    from aiohttp import web

    async def get_items(request):
        await asyncio.sleep(WAIT)
        return web.Response(text=answer(int(request.match_info['number']), render_page))

    app = web.Application()
    app.router.add_get('/items/{number}', get_items)
    progress[PID] = os.getpid()
    web.run_app(app, path=socket, access_log=None, print=None)


if __name__ == '__main__':
    if len(sys.argv) != 3 or sys.argv[1] != 'aiohttp':
        sys.exit(__doc__)
    serve_aiohttp(sys.argv[2])
