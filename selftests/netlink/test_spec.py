#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does Documentation/netlink/specs/plog.yaml say what the headers say?

Commands, attributes, states and flags: every name and number of one must be in
the other; an attribute's type must be the one that its comment in the header
begins with; limits must be the constants'. In kmod/netlink.c, what the spec
calls admin-perm must check for it, and every request must have an operation.
"""
import os
import re
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SPEC = "Documentation/netlink/specs/plog.yaml"
HEADER = "uapi/linux/plog_netlink.h"
DEVICE = "uapi/linux/plog.h"
CODE = ["kmod/netlink.c", "kmod/dump.c", "kmod/command.c", "kmod/relay.c"]

try:
    import yaml
except ImportError:
    subprocess.run([os.path.join(TOP, "tools/setup/packages"), "python3-yaml"],
                   check=True, stdout=sys.stderr)
    import yaml


def read(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as f:
        return f.read()


def enums(text):
    """Every enumerator's value, and the comment behind it."""
    values, comments = {}, {}
    for body in re.findall(r"^enum\s*\{(.*?)^\};", text, re.S | re.M):
        comments.update((name, note) for name, note in
                        re.findall(r"(PLOG_\w+)[^,\n]*,[ \t]*/\*\s*(.*?)\s*\*/", body, re.S))
        value = -1
        for item in re.sub(r"/\*.*?\*/", "", body, flags=re.S).split(","):
            m = re.match(r"\s*(\w+)\s*(?:=\s*(\w+))?\s*$", item)
            if not m:
                continue
            value = int(m[2], 0) if m[2] else value + 1
            values[m[1]] = value
    return values, comments


def defines(text):
    found = {}
    for name, value in re.findall(r"^#define\s+(PLOG_\w+)\s+(\S.*?)(?:\s*/\*.*)?$", text, re.M):
        m = re.fullmatch(r"\(1u << (\d+)\)", value)
        if m:
            found[name] = 1 << int(m[1])
        elif re.fullmatch(r"\d+", value):
            found[name] = int(value)
        elif value.startswith('"'):
            found[name] = value.strip('"')
    return found


def c_name(prefix, name):
    return (prefix + name).upper().replace("-", "_")


def difference(spec, header):
    """In people's words, or nothing."""
    return [f"{k}: the spec says {spec.get(k, 'nothing')}, the header {header.get(k, 'nothing')}"
            for k in sorted(spec.keys() | header.keys()) if spec.get(k) != header.get(k)]


def starting(values, prefix):
    return {k: v for k, v in values.items() if k.startswith(prefix) and
            not k.endswith("_MAX")}


def check_names(spec, values, defs):
    wrong = []
    for key, define in (("c-family-name", spec["name"]), ("c-version-name", spec["version"])):
        name = c_name("", spec[key])
        if defs.get(name) != define:
            wrong.append(f"{name}: the spec says {define}, the header {defs.get(name)}")
    groups = [g["name"] for g in spec["mcast-groups"]["list"]]
    if groups != [defs.get("PLOG_GENL_GROUP_EVENTS")]:
        wrong.append(f"multicast groups: the spec says {groups}")
    return wrong


def check_commands(spec, values, defs):
    found, value = {}, 0
    for op in spec["operations"]["list"]:
        value = op.get("value", value + 1)
        found[c_name(spec["name-prefix"], op["name"])] = value
    return difference(found, starting(values, "PLOG_CMD_"))


def check_attributes(spec, values, defs):
    found = {}
    for attr_set in spec["attribute-sets"]:
        for number, attr in enumerate(attr_set["attributes"], 1):
            found[c_name(attr_set["name-prefix"], attr["name"])] = number
    return difference(found, starting(values, "PLOG_A_"))


def check_types(spec, comments, defs):
    wrong = []
    names = {"string": "string", "binary": "binary"}
    for attr_set in spec["attribute-sets"]:
        for attr in attr_set["attributes"]:
            name = c_name(attr_set["name-prefix"], attr["name"])
            note = comments.get(name, "")
            said = re.match(r"(nest|[us]\d+|string|binary)\b", note)
            # The counters share one line of comment: u64 each.
            default = "u64" if attr_set["name"] == "stats" else None
            said = said[1] if said else default
            if attr["type"] == "pad":
                continue
            if said != names.get(attr["type"], attr["type"]):
                wrong.append(f"{name}: the spec says {attr['type']}, the header {said}")
    return wrong


def check_definitions(spec, values, defs):
    wrong = []
    for d in spec["definitions"]:
        prefix = d.get("name-prefix", "plog-")
        if d["type"] == "const":
            have = {c_name(prefix, d["name"]): d["value"]}
            want = {k: defs.get(k) for k in have}
        else:
            shift = d["type"] == "flags"
            have = {c_name(prefix, e): 1 << n if shift else n
                    for n, e in enumerate(d["entries"])}
            want = starting(defs if shift else values, c_name("", prefix))
        wrong += difference(have, want)
    return wrong


def check_limits(spec, values, defs):
    sets = {s["name"]: {a["name"]: a.get("checks", {}) for a in s["attributes"]}
            for s in spec["attribute-sets"]}
    size = sets["partition"]["max-message-bytes"]
    have = {"PLOG_MESSAGE_BYTES_MIN": size["min"]}
    wrong = difference(have, {k: defs.get(k) for k in have})
    m = re.search(r"PLOG_MESSAGE_BYTES_MAX\s+\((\d+) << (\d+)\)", read(DEVICE))
    if size["max"] != int(m[1]) << int(m[2]):
        wrong.append("max-message-bytes: not PLOG_MESSAGE_BYTES_MAX")
    return wrong


def check_code(spec, values, defs):
    wrong = []
    code = "\n".join(read(name) for name in CODE)
    ops = {m[1]: m[0] for m in
           re.findall(r"(\{\s*\.cmd = (PLOG_CMD_\w+),.*?\n\t\},)", code, re.S)}
    for op in spec["operations"]["list"]:
        name = c_name(spec["name-prefix"], op["name"])
        if "notify" in op:
            if name in ops:
                wrong.append(f"{name}: an event, but there is an operation")
            continue
        if name not in ops:
            wrong.append(f"{name}: no operation in the module")
            continue
        for kind, field in (("do", "doit"), ("dump", "dumpit")):
            if (kind in op) != (f".{field} =" in ops[name]):
                wrong.append(f"{name}: {field} is not as the spec has it")
        doit = re.search(r"\.doit = (\w+)", ops[name])
        if not doit:
            continue
        body = re.search(r"\nint %s\(.*?\n\}|\nstatic int %s\(.*?\n\}" % (doit[1], doit[1]),
                         code, re.S)[0]
        checks = "plog_netlink_admin(" in body or re.search(r"= parse\(", body)
        if bool(checks) != ("admin-perm" in op.get("flags", [])):
            wrong.append(f"{name}: the check for the capability is not as the spec has it")
    return wrong


def main():
    spec = yaml.safe_load(read(SPEC))
    values, comments = enums(read(HEADER))
    more, _ = enums(read(DEVICE))
    values.update(more)
    defs = defines(read(HEADER)) | defines(read(DEVICE))
    tests = [
        ("family, version and group have the header's names", check_names, values),
        ("commands", check_commands, values),
        ("attributes and their numbers", check_attributes, values),
        ("types are those of the header's comments", check_types, comments),
        ("states, flags and constants", check_definitions, values),
        ("limits", check_limits, values),
        ("the module's operations and what they need", check_code, values),
    ]
    print("TAP version 13")
    print(f"1..{len(tests)}")
    failed = 0
    for n, (name, test, arg) in enumerate(tests, 1):
        wrong = test(spec, arg, defs)
        for line in wrong:
            print(f"# {line}")
        print(f"{'not ok' if wrong else 'ok'} {n} - netlink spec: {name}")
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
