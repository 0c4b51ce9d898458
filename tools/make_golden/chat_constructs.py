#!/usr/bin/env python3
"""Writes tests/golden/chat/constructs.jsonl: one {"template", "vars", "text" or "error"} per line, rendered by jinja2.

The environment is the one chat templates are written for (that of transformers): sandboxed and immutable,
trim_blocks and lstrip_blocks on, loop controls, tojson that escapes nothing for HTML.

usage: chat_constructs.py OUTPUT.jsonl      (needs jinja2, 3.1.6 made the committed file)
"""
import json
import sys

from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    """{% generation %}…{% endgeneration %}: rendered as if it were not there."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])

    def raise_exception(message):
        raise ValueError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env


VARS = {
    "s": "Hello World", "pad": " \n\t x y \u3000", "uni": "Äpfel straße 你好 🦙é", "empty": "", "n": 7, "neg": -3,
    "f": 2.5, "whole": 4.0, "big": 1e22, "t": True, "no": None, "xs": [3, 1, 2], "words": ["b", "A", "c", "a"],
    "d": {"b": 2, "a": [1, {"x": "y'z"}], "items": "key", "ü": None}, "html": "<a href='x'>&\"</a>",
    "lines": "one\n\n  two\nthree\n", "table": [{"name": "Bob", "age": 5, "ok": True}, {"name": "al", "age": 3}],
    "nested": {"p": {"q": [10, 20]}}, "esc": "q\"b\\s/\u0001\u007f\u2028</s>", "csv": "a,b,,c",
}

CASES = r"""
{{ s }}|{{ n }}|{{ f }}|{{ whole }}|{{ big }}|{{ t }}|{{ no }}|{{ missing }}|{{ neg }}
{{ xs }} {{ d }} {{ (1,) }} {{ (1, 'a') }} {{ [] }} {{ {} }} {{ () }}
{{ ["it's", 'a"b', 'a\'b"c', 'tab\t', 'nl\n', 'back\\slash', '\x07', 'é'] }}
{{ 1, 2 }}
{{ 'a' 'b' "c" }}
{{ 'x\n\t\'\"\\\x41\u00e9\101\d' }}
{{ 1 + 2 * 3 - 4 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }}
{{ 6 / 3 }} {{ 1.5 + 1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1e3 }} {{ 1_000 }} {{ 0.1 + 0.2 }} {{ 1e-5 }} {{ 123456789.0 * 10 ** 8 }}
{{ -n | abs }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ +n }} {{ - n + 1 }}
{{ 'a' + 'b' ~ 1 ~ none ~ 2.0 }} {{ 1 ~ 2 + 3 }}
{{ 'ab' * 3 }} {{ 3 * 'ab' }} {{ [1] * 2 }} {{ 'x' * -1 }}|
{{ [1] + [2, 3] }} {{ (1,) + (2,) }}
{{ 1 < 2 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ 1 == 1.0 }} {{ 1 == true }} {{ 'a' == 1 }} {{ [1] == [1] }} {{ (1,) == [1] }} {{ none == none }}
{{ 1 in xs }} {{ 9 not in xs }} {{ 'ell' in s }} {{ 'a' in d }} {{ 2 in d }} {{ 'x' in missing }} {{ '' in '' }}
{{ not n }} {{ not missing }} {{ not not xs }} {{ n and 0 }} {{ 0 or 'x' }} {{ '' or [] }} {{ missing or 'default' }} {{ none and 1 }}
{{ 'yes' if t else 'no' }} {{ 'yes' if not t }}| {{ 1 if false else 2 if false else 3 }}
{{ not (1 == 2) and (3 > 2 or false) }}
{{ d.a }} {{ d['b'] }} {{ d.missing }}| {{ d['items'] }} {{ nested.p.q[1] }} {{ nested.p.q.0 }} {{ d.get('b') }} {{ d.get('z') }} {{ d.get('z', 'dflt') }}
{{ xs[0] }} {{ xs[-1] }} {{ xs[5] }}| {{ s[0] }} {{ s[-1] }} {{ uni[-1] }} {{ uni[13] }} {{ s[99] }}|
{{ xs[1:] }} {{ xs[:-1] }} {{ xs[::-1] }} {{ xs[::2] }} {{ xs[5:] }} {{ xs[-2:] }} {{ xs[2:0:-1] }} {{ (1,2,3)[1:] }}
{{ s[1:4] }} {{ s[::-1] }} {{ s[:-6] }} {{ s[-5:] }} {{ uni[::-1] }} {{ uni[3:9] }} {{ s[4:1] }}| {{ s[::3] }} {{ s[-100:100] }}
{{ {'a': 1, 'b': [2]}['b'][0] }} {{ {'a': 1,} }} {{ [1, 2,] }} {{ {1: 'x'}[1] }} {{ {'a': {'b': {}}} }}
{{ none.x }}| {{ n.x }}| {{ xs.foo }}| {{ s.nothing }}|
{{ missing.x }}
{{ missing['x'] }}
{{ d.missing.x }}
{{ missing() }}
{{ missing + 'x' }}
{{ s + 1 }}
{{ s + none }}
{{ 1 + '1' }}
{{ 1 < 'a' }}
{{ missing < 1 }}
{{ 1 / 0 }}
{{ 1 % 0 }}
{{ 'a' in none }}
{{ none in 'a' }}
{{ none | length }}
{{ 5 | length }}
{% for x in none %}{% endfor %}
{% for x in 5 %}{% endfor %}
{{ xs.append(1) }}
{{ d.update({}) }}
{{ raise_exception('my words') }}
{% if %}x{% endif %}
{{ }}
{{ 1 + }}
{% if true %}x
{% endif %}
{{ 'abc
{{ (1 }}
{% for x in xs %}{% endif %}
{% set x.y = 1 %}
{% set d.y = 1 %}
{# never closed
{{ s | trim }} [{{ pad | trim }}] [{{ '--x--' | trim('-') }}] [{{ missing | trim }}] {{ 5 | trim }}
{{ s | upper }} {{ s | lower }} {{ uni | upper }} {{ uni | lower }} {{ uni | capitalize }} {{ 'hELLO wORLD' | capitalize }} {{ "it's a-b (c) [d] 3x" | title }}
{{ s | length }} {{ uni | length }} {{ xs | length }} {{ d | count }} {{ missing | length }}
{{ s | replace('l', 'L') }} {{ s | replace('o', '0', 1) }} {{ 'aaa' | replace('aa', 'b') }} {{ 'abc' | replace('', '-') }} {{ 5 | replace('5', 'five') }}
{{ missing | default('x') }} {{ '' | default('x') }}| {{ '' | default('x', true) }} {{ none | default('x') }} {{ none | d('x', boolean=true) }} {{ missing | default }}|
{{ xs | first }} {{ xs | last }} {{ [] | first }}| {{ s | first }} {{ s | last }} {{ d | first }}
{{ xs | join }} {{ xs | join(', ') }} {{ words | join('-') }} {{ table | join('|', attribute='name') }} {{ 'abc' | join('.') }} {{ [none, 1.5, true] | join(' ') }}
{{ d | items | list }} {{ missing | items | list }} {% for k, v in d | items %}{{ k }}={{ v }};{% endfor %}
{{ s | list }} {{ d | list }} {{ (1, 2) | list }} {{ range(3) | list }}
{{ 5 | string }} {{ none | string }} {{ [1] | string | length }} {{ 2.0 | string }}
{{ '42' | int }} {{ '4.7' | int }} {{ 'x' | int }} {{ 'x' | int(9) }} {{ 3.99 | int }} {{ -3.99 | int }} {{ true | int }} {{ 'ff' | int(base=16) }} {{ ' 7 ' | int }} {{ none | int }}
{{ '1.5' | float }} {{ 'x' | float }} {{ 'x' | float(2.5) }} {{ 3 | float }}
{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round(2) }} {{ 42.55 | round(1, 'floor') }} {{ 42.51 | round(1, 'ceil') }} {{ 5 | round }} {{ 2.5 | round | int }} {{ -1.5 | round }}
{{ neg | abs }} {{ -2.5 | abs }}
{{ table | map(attribute='name') | list }} {{ table | map(attribute='ok', default='?') | join(',') }} {{ words | map('upper') | list }} {{ ['a-b'] | map('replace', '-', '+') | first }} {{ [nested] | map(attribute='p.q.1') | list }}
{{ table | selectattr('ok') | map(attribute='name') | list }} {{ table | rejectattr('ok', 'defined') | map(attribute='name') | list }} {{ table | selectattr('age', 'equalto', 3) | list | length }} {{ table | selectattr('age', '>', 3) | list | length }} {{ table | selectattr('name', 'in', ['al']) | list }}
{{ xs | select('odd') | list }} {{ xs | reject('equalto', 1) | list }} {{ [0, 1, '', 'a', none] | select | list }} {{ [1, 'a'] | select('string') | list }}
{{ xs | sort }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ xs | sort(reverse=true) }} {{ table | sort(attribute='age') | map(attribute='name') | list }}
{{ xs | reverse | list }} {{ s | reverse }} {{ [1, 2, 1, 'a', 'A'] | unique | list }}
{{ {'b': 1, 'A': 3, 'c': 2} | dictsort }} {{ {'b': 1, 'A': 3} | dictsort(true) }} {{ {'b': 1, 'A': 3} | dictsort(by='value', reverse=true) }}
{{ xs | sum }} {{ table | sum(attribute='age') }} {{ xs | min }} {{ xs | max }} {{ words | max }}
{{ lines | indent }}|{{ lines | indent(2, true) }}|{{ lines | indent(width=1, blank=true) }}|{{ 'a\nb' | indent('> ') }}
{{ html | e }} {{ html | escape }} {{ html | safe }} {{ 'one two_three  4' | wordcount }}
{{ '%s is %d' | format('x', 5) }} {{ '%s' % 'a' }} {{ '%s-%s' % ('a', 1.5) }} {{ '100%%' | format }} {{ '%d' % 3.7 }} {{ '%r' % 'q' }}
{{ d | tojson }} {{ s | tojson }} {{ none | tojson }} {{ true | tojson }} {{ 1.0 | tojson }} {{ (1, 'x') | tojson }} {{ uni | tojson }} {{ html | tojson }}
{{ d | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ {} | tojson(indent=4) }} {{ [1, [2]] | tojson(indent=1) }}
{{ esc | tojson }} {{ uni | tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ {'a': [1, 2]} | tojson(separators=(',', ':')) }} {{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }}
{{ missing | tojson }}
{{ s is string }} {{ n is string }} {{ d is mapping }} {{ xs is mapping }} {{ xs is iterable }} {{ s is iterable }} {{ n is iterable }} {{ none is iterable }} {{ d is iterable }} {{ missing is iterable }}
{{ xs is sequence }} {{ d is sequence }} {{ s is sequence }} {{ n is sequence }} {{ (1,) is sequence }}
{{ n is number }} {{ f is number }} {{ t is number }} {{ s is number }} {{ n is integer }} {{ t is integer }} {{ f is float }} {{ n is float }} {{ t is boolean }} {{ n is boolean }}
{{ t is true }} {{ 1 is true }} {{ false is false }} {{ none is none }} {{ missing is none }} {{ missing is defined }} {{ s is defined }} {{ missing is undefined }} {{ d.x is not defined }} {{ none is not none }}
{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 1 is equalto 1 }} {{ 1 is eq 2 }} {{ 1 is ne 2 }} {{ 3 is gt 2 }} {{ 3 is lt(2) }} {{ 2 is ge 2 }} {{ 2 is le 1 }} {{ 1 is in [1, 2] }} {{ 'x' is in 'xyz' }}
{{ 'ABC' is upper }} {{ 'abc' is lower }} {{ none is sameas none }} {{ raise_exception is callable }} {{ s is callable }} {{ 'upper' is filter }} {{ 'nope' is filter }}
{{ not s is string }} {{ s is string and n is number }} {{ s is string or false }} {{ 'a' if s is string else 'b' }} {{ n is not string }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a b c'.rsplit(' ', 1) }} {{ 'abc'.split('x') }} {{ ' a b  c'.split(none, 1) }} {{ ''.split(',') }} {{ ''.split() }}
{{ '  x '.strip() }}|{{ '  x '.lstrip() }}|{{ '  x '.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcba'.strip('ab') }}|{{ pad.strip() }}|{{ '\n\nx\n'.lstrip('\n') }}
{{ s.startswith('Hell') }} {{ s.endswith('d') }} {{ s.startswith(('x', 'H')) }} {{ s.upper() }} {{ s.lower() }} {{ "they're bill's 3rd".title() }} {{ 'aBC'.capitalize() }}
{{ s.find('o') }} {{ s.rfind('o') }} {{ s.find('zz') }} {{ uni.find('你') }} {{ s.count('l') }} {{ s.index('W') }} {{ s.replace('l', '1', 2) }} {{ s.replace('World', '') }}
{{ ', '.join(words) }} {{ '{} and {}'.format('a', 1) }} {{ '{0}{1}{0}'.format('a', 'b') }} {{ '{x}!'.format(x='k') }} {{ '{{}}'.format() }}
{{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ 'a1'.isalnum() }} {{ ' '.isspace() }} {{ 'AB'.isupper() }} {{ 'ab'.islower() }} {{ ''.isdigit() }}
{{ 'a\nb\r\nc'.splitlines() }} {{ lines.splitlines(true) }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('x') }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('c') }} {{ '7'.zfill(3) }} {{ '-7'.zfill(4) }}
{{ d.items() | list }} {{ d.keys() | list }} {{ d.values() | list }} {% for k, v in d.items() %}{{ k }}:{{ v }} {% endfor %}
{{ xs.index(1) }} {{ xs.count(3) }} {{ xs.index(99) }}
{{ ''.join([1]) }}
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}
{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.cycle('a', 'b') }} {{ loop.depth }};{% endfor %}
{% for x in [] %}x{% else %}none{% endfor %} {% for x in missing %}x{% else %}none{% endfor %} {% for x in xs %}x{% else %}none{% endfor %}
{% for x in xs if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% else %}e{% endfor %}{% for x in xs if x > 9 %}{% else %}empty{% endfor %}
{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %} {% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }} {% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'aé你' %}[{{ c }}]{% endfor %}{% for (a, b), c in [((1, 2), 3)] %}{{ a + b + c }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for i in range(3) %}{% for j in range(i) %}{{ i }}{{ j }}{{ loop.first }} {% endfor %}{{ loop.index }};{% endfor %}
{% for x in xs | sort %}{{ x }}{% endfor %}{% for x in xs[::-1] %}{{ x }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}
{{ loop }}
{% set x = 0 %}{% for i in range(3) %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}
{% for i in range(3) %}{% if i == 0 %}{% set y = 1 %}{% endif %}[{{ y }}]{% endfor %}[{{ y }}]
{% set ns = namespace(a=1, b='x') %}{% for i in xs %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}|{% set ns.c = [1] %}{{ ns.c }}{{ ns['a'] }}
{% set ns = namespace({'k': 'v'}, z=1) %}{{ ns.k }}{{ ns.z }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}{% set (p, q) = 'xy' %}{{ q }}{{ p }}
{% set x %}block {{ n }}{% set hidden = 1 %}{% endset %}[{{ x }}]{{ hidden }}{% set y | upper | replace('A', 'b') %}abc{% endset %}{{ y }}{{ x is string }}
{% if n > 5 %}big{% elif n > 3 %}mid{% else %}small{% endif %}{% if empty %}x{% elif no %}y{% else %}z{% endif %}{% if xs and n == 7 %}both{% endif %}
{% if n == 7 %}{% set inside = 'kept' %}{% endif %}{{ inside }}
{% macro m(a, b='B', c=none) %}<{{ a }}{{ b }}{{ c }}>{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(c=3, a=1) }}{{ m() }}{{ m(1, c=2) | upper }}{{ m('x') | length }}
{% macro fact(k) %}{% if k <= 1 %}1{% else %}{{ k * (fact(k - 1) | int) }}{% endif %}{% endmacro %}{{ fact(5) }}
{% macro outer() %}{{ later() }}{% endmacro %}{% macro later() %}L{{ g }}{% endmacro %}{% set g = 1 %}{{ outer() }}{% set g = 2 %}{{ outer() }}
{% macro m(a) %}{% set z = a %}{{ z }}{% endmacro %}{{ m(1) }}{{ z }}
{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}
{% macro m() %}{{ loop }}{% endmacro %}{{ m(1) }}
{% macro m() %}x{% endmacro %}{{ m(q=1) }}
{% macro wrap(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call wrap('b') %}in {{ n }}{% endcall %}{% macro each(l) %}{% for x in l %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(v) each(xs) %}[{{ v }}]{% endcall %}
{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace('a', 'b') | upper %}aaa{% endfilter %}
{% with a = 1, b = n %}{{ a }}{{ b }}{% set c = 2 %}{{ c }}{% endwith %}{{ a }}{{ c }}{% with %}{{ n }}{% endwith %}
{% generation %}{{ s }}{% set kept = 1 %}{% endgeneration %}{{ kept }}
{% raw %}{{ not }} {% run %}{# raw #}{% endraw %}|{%- raw -%}  x  {%- endraw -%}  |
{{ range(5) | list }} {{ range(1, 4) | list }} {{ range(5, 0, -2) | list }} {{ range(0) | list }} {{ dict(a=1, b=2) }} {{ dict({'x': 1}, y=2) }}
{{ range(1, 2, 0) }}
{{ 'a' | nofilter }}
{{ 'a' is notest }}
{% unknown %}
a {#- comment -#} b {# c #} d
a  {%- if true -%}  b  {%- endif -%}  c
a {{- ' b ' -}} c
x {% if true %} y {% endif %} z
{{ '{{' }} {{ '%}' }} {{ {'a': {'b': 1}} }} {{ "}}" }}
{{ {'a': {'b': 1}}.a.b }}
{ { % } %} }} #}
{{ s[1:][0] }} {{ s.split(' ')[1][::-1] }} {{ (s | upper)[0:2] }} {{ (1, 2)[0] }} {{ [[1, 2], [3]][0][1] }} {{ "abc"[1] }}
{{ 'a' if missing is defined and missing else 'b' }} {{ (missing | default({})).get('x', 'y') }} {{ d.get('a')[1].x }}
{{ not missing | default(false) }} {{ missing | default(none) is none }} {{ n | string + 'x' }} {{ 'x' + n | string }}
{{ d.a is iterable and d.a is not string }} {{ d.b is defined and d.b is number }}
{% set m = [{'role': 'a'}, {'role': 'b'}] %}{{ m[0].role }}{{ m[-1]['role'] }}{{ m[1:] | map(attribute='role') | first }}{{ (m | last).role }}{{ m | length - 1 }}
{% if 'x' not in d and 'b' in d %}ok{% endif %}{% if not ('x' in d) %}ok{% endif %}
{{ [1, 2, 3] | map('string') | join(',') }} {{ ['a', 'b'] | map('length') | sum }} {{ [[1, 2], [3]] | map('first') | list }} {{ [' a '] | map('trim') | list }}
{{ true and 'x' or 'y' }} {{ (n == 7) | string | lower }} {{ (n == 7) | tojson }} {{ [true, none, 1.50] | tojson }}
{{ s.foo() }}
{{ s() }}
{{ xs['a'] }}| {{ s['upper']() }} {{ d[none] }}| {{ d[['x']] }}|
{{ 9223372036854775807 }} {{ -9223372036854775807 }}
{{ 3 | float | string ~ 'x' }} {{ 10 // 3 * 3 + 10 % 3 }} {{ 5 - -5 }} {{ 1.0 == 1 }} {{ 0.5 < 1 }}
{{ 'ß'.upper() }} {{ 'ÀÉ'.lower() }} {{ 'ǆ'.title() }}
{{ xs | attr('count') is callable }} {{ d | attr('b') }}|
""".strip("\n")

# White-space control, where the line ends matter.
WHITESPACE = [
    "a\n\n", "a\n", "\n", "", "a\r\nb\rc\r\n", "  {% if true %}\n    x\n  {% endif %}\n  y\n",
    "  {# c #}\nx\n  {# c #} y\n", "a\n  {% if true %}b{% endif %}\n  c", "a {% if true %}\n\n b{% endif %}\n\n c",
    "{% if true -%}\n\n  x \n\n{%- endif %}\n y", "x\n   {%- if true %}\n y {%- endif %} z", "{% if true +%}\nx{% endif +%}\ny",
    "x\n  {%+ if true %}y{% endif %}", "  {{ s }}\n  {{- s }}\n {{ s -}} \n x", "{%- set a = 1 -%}\n\n{{ a }}\n",
    "\t{% set a = 1 %}\t{{ a }}", "{% for x in xs %}\n{{ x }}\n{% endfor %}\n", "{% for x in xs %}\n  {% if x > 1 %}\n    {{ x }}\n  {% endif %}\n{% endfor %}\n",
    "{% raw %}\n  {{ x }}\n{% endraw %}\nz", "a\n  {% raw %} {% if %} {% endraw %}\n b", "{%- raw -%}\n x \n{%- endraw -%}\n b",
    "{# a #}\n{# b #}\n\nc", "{#- a -#}\n\n c", "x {#- a #} \n y", "x\n  {#+ a +#}\n y", "\u3000{%- if true -%}\u3000x\u00a0{%- endif %}",
    "{%if true%}a{%else%}b{%endif%}", "{{s}}{{-s-}}{{ s}}", "{% set t %}\n x\n{% endset %}\n[{{ t }}]",
    "{% macro m() %}\n  <b>\n{% endmacro %}\n{{ m() }}|", "{%- macro m() -%}\n  <b>\n{%- endmacro -%}\n{{ m() }}|", "a{% if true %}   \n   b{% endif %}",
    "  {% if true %}{% if true %}\nx{% endif %}{% endif %}", "\n\n  {% if true %}\n\n  x\n{% endif %}", "{{ 'a\nb' }}\n", "a{# {{ x }} {% if %} #}b",
]


def render(env, template):
    try:
        return {"text": env.from_string(template).render(**VARS)}
    except Exception as error:  # every refusal counts, whatever its Python type
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    env = environment()
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(json.dumps({"vars": VARS}, ensure_ascii=False) + "\n")
        for template in CASES.split("\n") + WHITESPACE:
            out.write(json.dumps({"template": template, **render(env, template)}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
