#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What must stay flat, beside its targets; from the lines of tools/bench/flat-steps.

Usage: flat.py [--strict] FILE...
"""

import sys


def say(what, value, target, met):
    print(f'{what:<58} {value:<26} {target:<16} {"met" if met else "MISSED"}')
    return met


def main(argv):
    rows, logs = {}, {}
    for path in [a for a in argv if not a.startswith('--')]:
        with open(path, encoding='utf-8') as lines:
            for words in (line.split() for line in lines):
                if len(words) < 3 or words[0] != 'flat':
                    continue
                if words[1].startswith('flat-'):
                    logs[words[1][5:]] = dict(zip(words[2::2], map(int, words[3::2])))
                else:
                    rows[words[1]] = words[2:]
    met = True
    print('what must stay flat; logs of 1 MB, 1 GB and 20 GB are synthetic: batches of 16 KiB '
          'that are\nholes but where they are looked for, with whole indexes\n')
    if len(logs) == 3:
        for what, text in (('append', 'append of 16 KiB, instructions'),
                           ('offset', 'LOCATE by offset, instructions'),
                           ('time', 'LOOKUP by time, instructions')):
            costs = [logs[size][what] for size in ('1m', '1g', '20g')]
            spread = max(costs) / min(costs) - 1
            met &= say(text + ' at 1 MB, 1 GB, 20 GB', ' '.join(f'{c:,}' for c in costs),
                       f'<= 10 %: {100 * spread:.1f} %', spread <= 0.10)
    if 'open' in rows:
        ms = int(rows['open'][1]) - int(rows['open'][3])
        met &= say('opening 1,000 segments, clean and warm, ms', str(ms), '<= 100', ms <= 100)
    if 'memory' in rows:
        own, vfs = int(rows['memory'][0]), int(rows['memory'][2])
        met &= say('memory of an idle partition, bytes (and what the VFS keeps)',
                   f'{own:,} ({vfs:,})', '<= 4096', own <= 4096)
    for key, text, target in (('create', 'creating', 60000), ('stop', 'stopping', 60000),
                              ('start', 'starting again', 60000)):
        if key in rows:
            count, ms = int(rows[key][0]), int(rows[key][1])
            met &= say(f'{text} {count:,} partitions, ms', f'{ms:,}', f'<= {target:,}',
                       ms <= target)
    return 1 if '--strict' in argv and not met else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
