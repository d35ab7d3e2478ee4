#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does the documentation agree with the code, and with itself? TAP.

    selftests/docs/check.py [TOP]    (another tree than this one)

Every page must parse without a message of docutils and stand in the index,
every link inside the project must lead somewhere, and what the headers and
tables of the code define must be named on the page that describes it.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(HERE))
DOCS = os.path.join(TOP, 'Documentation')
PAGES = ['index', 'design', 'uapi', 'library', 'netlink', 'protocol', 'operations', 'limits',
         'testing']


def text(*path):
    with open(os.path.join(TOP, *path), encoding='utf-8') as f:
        return f.read()


def page(name):
    return text('Documentation', name + '.rst')


# ---- what the code defines ----

def ioctls():
    return re.findall(r'^#define\s+(PLOG_IOC_(?!MAGIC)\w+)\s', text('uapi/linux/plog.h'), re.M)


def ioctl_flags():
    return re.findall(r'^#define\s+(PLOG_(?:MODE|STATE|APPEND|LOCATE|LOOKUP)_\w+)\s+\(?1u',
                      text('uapi/linux/plog.h'), re.M) + \
        re.findall(r'^\s+(PLOG_(?:PARTITION|CONTROL)_\w+)\s*=', text('uapi/linux/plog.h'), re.M)


def netlink_commands():
    return [c for c in re.findall(r'^\s+(PLOG_CMD_\w+)\b', text('uapi/linux/plog_netlink.h'), re.M)]


def daemon_keys():
    source = text('daemon/config.c')
    keys = re.findall(r'^\s+KEY\("([a-z.]+)"', source, re.M)
    by_hand = re.search(r'listener_keys\[\] = \{(.*?)\};', source, re.S)
    return keys + re.findall(r'"([a-z.]+)"', by_hand.group(1) if by_hand else '')


def topic_keys():
    return re.findall(r'\.name = "([a-z0-9.]+)"', text('tools/libplog/topicconfig.c'))


def daemon_defaults():
    """Of whole numbers and truths: the others are words on the page."""
    rows = re.findall(r'KEY\("([a-z.]+)", (INT|BOOL), \w+,\s+[\w-]+,\s+\w+,\s+(\w+|-\d+),',
                      text('daemon/config.c'))
    named = {'INT32_MAX': str(2**31 - 1)}
    return [(key, named.get(default, default)) for key, _, default in rows]


def topic_defaults():
    rows = re.findall(r'\.name = "([a-z0-9.]+)".*?\.initial = (?:"([^"]*)"|(FOREVER))',
                      text('tools/libplog/topicconfig.c'), re.S)
    return [(key, '2^63 - 1' if forever else value or 'empty') for key, value, forever in rows]


def apis():
    """Name, lowest and highest version, and flexible from, of what the daemon offers."""
    return re.findall(r'^\s*\{ API_\w+, "(\w+)", (\d+), (\d+), \d+, (\d+),',
                      text('daemon/kafka/schema.c'), re.M)


def make_targets():
    return re.findall(r'^([a-z][a-z-]*):.*## ', text('Makefile'), re.M)


def top_folders():
    """What git follows, without the contents of folders."""
    out = subprocess.run(['git', '-C', TOP, 'ls-tree', '-d', '--name-only', 'HEAD'],
                         capture_output=True, text=True, check=False)
    if out.returncode:
        return []
    return [d for d in out.stdout.split() if not d.startswith('.')]


# ---- checks: each returns a list of complaints ----

def missing(names, where, haystack):
    """Names that do not stand as whole words on a page."""
    return [f'{where} does not mention {n}' for n in names
            if not re.search(r'(?<![\w.])' + re.escape(n) + r'(?![\w]|\.\w)', haystack)]


def some(names, what):
    """A table that reads as empty means that this script lost track of it."""
    return names or sys.exit(f'1..0\nBail out! found no {what}: does the pattern still fit?')


def check_parse(name):
    from docutils.core import publish_doctree
    from docutils.utils import SystemMessage
    problems = []

    class Stream:
        def write(self, line):
            if line.strip():
                problems.append(line.strip())

    try:
        publish_doctree(page(name), source_path=f'Documentation/{name}.rst', settings_overrides={
            'warning_stream': Stream(), 'report_level': 1, 'halt_level': 5,
            'file_insertion_enabled': False, 'raw_enabled': False})
    except SystemMessage as e:
        problems.append(str(e))
    return problems


def targets_of(source, folder):
    """Files that a page of reStructuredText or Markdown links to."""
    links = re.findall(r'`[^`]*?<([^`>]+)>`_', source) + re.findall(r'\]\(([^)\s]+)\)', source)
    links += re.findall(r'^\.\. _[^:]+: +(\S+)$', source, re.M)
    links += re.findall(r'!\[[^]]*\]\(([^)\s]+)\)|\.\. (?:image|figure):: (\S+)', source) and \
        [a or b for a, b in re.findall(r'!\[[^]]*\]\(([^)\s]+)\)|\.\. (?:image|figure):: (\S+)',
                                       source)]
    for link in links:
        if re.match(r'[a-z]+:', link):
            continue
        path, _, anchor = link.partition('#')
        yield link, os.path.normpath(os.path.join(folder, path)) if path else None, anchor


def headings(path):
    """Anchors as GitHub and docutils make them from the headings of a file."""
    source = open(path, encoding='utf-8').read()
    if path.endswith('.md'):
        titles = re.findall(r'^#+ +(.*)$', source, re.M)
    else:
        titles = re.findall(r'^(\S.*)\n([=\-~^"])\2{2,}\s*$', source, re.M)
        titles = [t for t, _ in titles]
    return {re.sub(r'[^a-z0-9]+', '-', t.lower()).strip('-') for t in titles}


def check_links(path):
    full = os.path.join(TOP, path)
    source = open(full, encoding='utf-8').read()
    problems = []
    for link, target, anchor in targets_of(source, os.path.dirname(full)):
        if target and not os.path.exists(target):
            problems.append(f'{path}: the link {link} leads nowhere')
        elif anchor and anchor not in headings(target or full):
            problems.append(f'{path}: {link}: there is no such heading')
    # Paths in literals, of files that the page talks about.
    for literal in re.findall(r'``?([\w./-]+/[\w./-]*\.(?:c|h|rst|md|py|sh|yaml))``?', source):
        if literal.startswith(('linux/', '/')):
            continue
        if not os.path.exists(os.path.join(TOP, literal)) and \
           not os.path.exists(os.path.join(os.path.dirname(full), literal)):
            problems.append(f'{path}: there is no {literal}')
    return problems


def check_index():
    index = page('index')
    return [f'index.rst does not link {name}.rst' for name in PAGES[1:]
            if f'{name}.rst' not in index]


def check_spdx():
    problems = []
    for name in sorted(os.listdir(DOCS)):
        if name.endswith('.rst') and not page(name[:-4]).startswith('.. SPDX-License-Identifier: '):
            problems.append(f'Documentation/{name} does not begin with its SPDX line')
    return problems


def check_uapi():
    return missing(some(ioctls(), 'ioctls'), 'uapi.rst', page('uapi'))


def check_flags():
    return missing(some(ioctl_flags(), 'flags'), 'uapi.rst', page('uapi'))


def check_netlink():
    # Without the prefix, as the YAML spec has them too.
    source = page('netlink')
    return [f'netlink.rst does not mention {c}' for c in some(netlink_commands(), 'commands')
            if c not in source and c[len('PLOG_CMD_'):].lower().replace('_', '-') not in source
            and c[len('PLOG_CMD_'):] not in source]


def check_daemon_keys():
    return missing(some(daemon_keys(), 'keys of plogd'), 'operations.rst', page('operations'))


def check_topic_keys():
    return missing(some(topic_keys(), 'topic keys'), 'operations.rst', page('operations'))


def check_defaults():
    """The second column of the tables of keys is the default in the code."""
    source = page('operations')
    problems = []
    for key, default in some(daemon_defaults() + topic_defaults(), 'defaults'):
        row = re.search(r'^``' + re.escape(key) + r'``(?: \*)?  +(\S+(?: \S+)*)', source, re.M)
        if not row:
            problems.append(f'operations.rst has no row for {key}')
        elif row.group(1).strip('`') != default:
            problems.append(f'operations.rst: {key} is {default} in the code, '
                            f'not {row.group(1)}')
    return problems


def check_reload():
    """A * behind a key of plogd says that SIGHUP takes it."""
    rows = re.findall(r'KEY\("([a-z.]+)", \w+, \w+,\s+[^)]*?(true|false),\s+(?:NULL|"[a-z.]+")\)',
                      text('daemon/config.c'))
    source = page('operations')
    return [f'operations.rst: {key}: the * for SIGHUP is wrong, the code says {reload}'
            for key, reload in some(rows, 'reload flags')
            if (f'``{key}`` *' in source) != (reload == 'true')]


def check_protocol():
    source = page('protocol')
    problems = []
    for name, low, high, flexible in some(apis(), 'APIs'):
        if not re.search(rf'^ *\d+  {name} +{low}-{high} +{flexible}\+', source, re.M):
            problems.append(f'protocol.rst has no row for {name} {low}-{high}, '
                            f'flexible from {flexible}')
    listed = re.findall(r'^ *\d+  ([A-Z]\w+)  +\d+-\d+', source, re.M)
    problems += [f'protocol.rst lists {n}, which plogd does not offer' for n in listed
                 if n not in [a[0] for a in apis()]]
    return problems


def check_targets():
    return missing(['make ' + t for t in some(make_targets(), 'make targets')],
                   'testing.rst, operations.rst and README.md',
                   page('testing') + page('operations') + text('README.md'))


def check_make():
    """What a page tells a reader to run is there."""
    pages = 'README.md', *sorted('Documentation/' + f for f in os.listdir(TOP + '/Documentation')
                                 if f.endswith('.rst'))
    return [f'{p} says make {t}, and there is no such target' for p in pages
            for t in sorted(set(re.findall(r'`make ([a-z][a-z-]*)', text(p)))) if t not in make_targets()]


def check_who():
    """Who acts on each key of a topic's configuration, by the page and by the table."""
    scopes = {'TOPICCONFIG_MODULE': 'module', 'TOPICCONFIG_DAEMON': 'plogd', '': 'kept'}
    rows = re.findall(r'\.name = "([a-z0-9.]+)"(.*?)\.initial', text('tools/libplog/topicconfig.c'), re.S)
    problems = []
    for key, rest in some(rows, 'topic keys'):
        scope = re.search(r'\.scope = (\w+)', rest)
        who = scopes[scope.group(1) if scope else '']
        if not re.search(r'^``' + re.escape(key) + r'`` +\S+(?: - 1)? +' + who + r'\b', page('operations'), re.M):
            problems.append(f'operations.rst does not say that {key} is for: {who}')
    return problems


def check_folders():
    return [f'the table of README.md has no {d}/' for d in top_folders()
            if not re.search(r'^\| `' + re.escape(d) + '/', text('README.md'), re.M)]


def check_tour():
    """The commands of the README are those that tools/demo/tour runs."""
    shown = some(re.findall(r'^    \$ (.*)$', text('README.md'), re.M), 'commands of the tour')
    source = text('tools/demo/tour').replace('\\$', '$').replace('$dir', '/var/lib/plog/data')
    run = re.findall(r'^show "(.*)"$', source, re.M)
    run = [re.sub(r'\$daemon', '106', c) for c in run]
    shown = [re.sub(r'KILL \d+', 'KILL 106', c) for c in shown]
    if shown == run:
        return []
    return [f'README.md shows, tools/demo/tour does not run: {c}' for c in shown if c not in run] + \
        [f'tools/demo/tour runs, README.md does not show: {c}' for c in run if c not in shown] or \
        ['README.md and tools/demo/tour have the same commands in another order']


def main():
    sys.stdout.reconfigure(line_buffering=True)
    try:
        import docutils  # noqa: F401
    except ImportError:
        subprocess.run([os.path.join(TOP, 'tools/setup/packages'), '@docs'], check=True,
                       stdout=sys.stderr)
        # Debian's package is for Debian's python, which may not be this one.
        if os.path.realpath(sys.executable) != os.path.realpath('/usr/bin/python3'):
            os.execv('/usr/bin/python3', ['/usr/bin/python3', '-B'] + sys.argv)
    tests = [(f'Documentation/{name}.rst parses', lambda n=name: check_parse(n))
             for name in PAGES]
    tests += [(f'links of {path} resolve', lambda p=path: check_links(p))
              for path in ['README.md'] + [f'Documentation/{name}.rst' for name in PAGES]]
    tests += [
        ('the index links every page', check_index),
        ('every page has its SPDX line', check_spdx),
        ('uapi.rst describes every ioctl', check_uapi),
        ('uapi.rst describes every flag and state', check_flags),
        ('netlink.rst describes every command', check_netlink),
        ('operations.rst describes every key of plogd', check_daemon_keys),
        ('operations.rst describes every topic key', check_topic_keys),
        ('operations.rst has the defaults of the code', check_defaults),
        ('operations.rst says which keys SIGHUP takes', check_reload),
        ('protocol.rst lists what plogd offers', check_protocol),
        ('every make target is described', check_targets),
        ('every make target that a page names is there', check_make),
        ('who acts on the keys of a topic', check_who),
        ('README.md shows the tour that runs', check_tour),
        ('README.md has every folder', check_folders),
    ]
    print(f'1..{len(tests)}')
    failed = 0
    for number, (name, run) in enumerate(tests, 1):
        try:
            problems = run()
        except OSError as e:
            problems = [f'{e.filename}: {e.strerror}']
        print(f'{"not ok" if problems else "ok"} {number} - {name}')
        for line in problems:
            print('#   ' + line.replace('\n', '\n#   '))
        failed += bool(problems)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
