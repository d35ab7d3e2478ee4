#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Medians, spreads and ratios of the samples that plogbench printed.

Usage: report.py [--json] [--strict] TIMED COUNTED

A ratio is taken inside each round, device against file of the same round, and
then the median of the rounds: what slows both of one round leaves it alone. It
always says how well the device does, 1.00 being the plain file: speed by speed
for times, device's instructions over the file's for counts.
"""

import json
import statistics
import sys

# test, variant, against, by the clock at least, in instructions at most
RATIOS = [
    ('append-16k', 'daemon', 'file', 0.85, 1.10),
    ('append-16k', 'write', 'file', 0.85, 1.10),
    ('append-1m', 'daemon', 'file', 0.85, 1.10),
    ('append-1m', 'write', 'file', 0.85, 1.10),
    ('sendfile-1m', 'device', 'file', 0.90, None),
    ('records', 'write', 'file', None, None),
    ('records', 'writev-100', 'file', None, None),
]

WHAT = {
    ('append-16k', 'file'): '16 KiB: write(2) to a file + CRC32C in user space',
    ('append-16k', 'daemon'): '16 KiB: PLOG_IOC_APPEND as the daemon',
    ('append-16k', 'write'): '16 KiB: write(2) in batch mode, records checked',
    ('append-1m', 'file'): '1 MiB: write(2) to a file + CRC32C in user space',
    ('append-1m', 'daemon'): '1 MiB: PLOG_IOC_APPEND as the daemon',
    ('append-1m', 'write'): '1 MiB: write(2) in batch mode, records checked',
    ('sendfile-1m', 'file'): 'sendfile(2) of 1 MiB from the log file itself',
    ('sendfile-1m', 'device'): 'LOCATE and sendfile(2) of 1 MiB from the device',
    ('records', 'file'): '22 bytes: write(2) to a file, no framing, no CRC',
    ('records', 'write'): '22 bytes: write(2), one record',
    ('records', 'writev-100'): '22 bytes: one of 100 in a writev(2)',
}

BYTES = {'append-16k': 16 << 10, 'append-1m': 1 << 20, 'sendfile-1m': 1 << 20}


def read(path):
    """Samples by (test, variant), and what the run said about itself."""
    samples, about = {}, {}
    with open(path, encoding='utf-8') as lines:
        for line in lines:
            words = line.split()
            if not words:
                continue
            if words[0] == 'sample':
                samples.setdefault((words[1], words[2]), []).append(float(words[4]))
            else:
                about[words[0]] = ' '.join(words[1:])
    return samples, about


def middle(values):
    return {'median': statistics.median(values), 'min': min(values), 'max': max(values)}


def rates(samples):
    """Per second: MB where the operation has a size, else records."""
    out = {}
    for key, costs in samples.items():
        unit = BYTES.get(key[0], 0) / 1e6 or 1
        out[key] = middle([unit / cost for cost in costs])
    return out


def verdict(value, target, at_least):
    if target is None:
        return ''
    met = value >= target if at_least else value <= target
    return f'{">=" if at_least else "<="} {target:.2f} {"met" if met else "MISSED"}'


def build(timed, counted):
    rows = []
    for test, variant, against, fast, lean in RATIOS:
        key, base = (test, variant), (test, against)
        if key not in timed or key not in counted:
            sys.exit(f'report.py: no samples of {test} {variant}: the run did not finish')
        speed = middle([b / a for a, b in zip(timed[key], timed[base])])
        count = middle([a / b for a, b in zip(counted[key], counted[base])])
        rows.append({
            'test': test, 'variant': variant, 'against': against,
            'speed_ratio': speed, 'speed_target': fast,
            'instruction_ratio': count, 'instruction_target': lean,
            'met': (fast is None or speed['median'] >= fast) and
                   (lean is None or count['median'] <= lean),
        })
    return rows


def spread(m, form):
    return f'{m["median"]:{form}}  ({m["min"]:{form}} - {m["max"]:{form}})'


def print_table(rows, timed, counted, about):
    speed = rates(timed)
    rounds = len(next(iter(timed.values())))
    print(f'kernel {about.get("kernel", "?")}, {about.get("filesystem", "?")}, '
          f'{rounds} rounds: median (least - most)\n')
    print(f'{"operation":<52} {"per second":<30} {"instructions each"}')
    for key, text in WHAT.items():
        unit = 'MB' if key[0] in BYTES else 'records'
        rate = spread(speed[key], ',.0f')
        count = spread(middle(counted[key]), ',.0f')
        print(f'{text:<52} {rate + " " + unit:<30} {count}')
    print(f'\n{"ratio to the plain file":<26} {"speed":<22} {"target":<15} '
          f'{"instructions":<22} target')
    for row in rows:
        name = f'{row["test"]} {row["variant"]}'
        fast = verdict(row['speed_ratio']['median'], row['speed_target'], True)
        lean = verdict(row['instruction_ratio']['median'], row['instruction_target'], False)
        print(f'{name:<26} {spread(row["speed_ratio"], ".2f"):<22} {fast:<15} '
              f'{spread(row["instruction_ratio"], ".2f"):<22} {lean}'.rstrip())


def main(argv):
    flags = {a for a in argv if a.startswith('--')}
    paths = [a for a in argv if not a.startswith('--')]
    if len(paths) != 2 or flags - {'--json', '--strict'}:
        sys.exit(__doc__)
    timed, about = read(paths[0])
    counted, _ = read(paths[1])
    rows = build(timed, counted)
    if '--json' in flags:
        def flat(samples):
            return [{'test': t, 'variant': v, 'what': WHAT[t, v], **middle(c), 'samples': c}
                    for (t, v), c in samples.items()]
        print(json.dumps({**about, 'seconds': flat(timed), 'instructions': flat(counted),
                          'ratios': rows}, indent=1))
    else:
        print_table(rows, timed, counted, about)
    return 1 if '--strict' in flags and not all(row['met'] for row in rows) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
