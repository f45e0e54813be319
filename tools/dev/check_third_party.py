#!/usr/bin/env python3
"""Checks that THIRD_PARTY.md names all that the build looks for.

check_third_party.py [ROOT]: reads every CMakeLists.txt under ROOT (default: this repository), prints a line for each find_package(),
find_library(), find_path() and pkg_check_modules() whose name THIRD_PARTY.md lacks, and for each name of its tables that no file
looks for. Ends with 1 if there was one.
"""

import pathlib
import re
import sys

FIND = re.compile(r"^\s*(?:find_package|find_library|find_path|pkg_check_modules|pkg_search_module)\(\s*(\w+)", re.M)
OWN = {"clnet"}


def wrong(root):
    page = (root / "THIRD_PARTY.md").read_text(encoding="utf-8")
    listed = set()
    for row in page.splitlines():
        cells = row.split("|")
        if row.startswith("| ") and len(cells) > 3:
            listed |= set(re.findall(r"`(\w+)`", cells[2]))
    found = {}
    for top in (".", "tools", "tests", "examples"):
        path = root / top / "CMakeLists.txt"
        if path.exists():
            for name in FIND.findall(path.read_text(encoding="utf-8")):
                found.setdefault(name, path.relative_to(root).as_posix())
    for name in sorted(set(found) - listed - OWN):
        yield f"{found[name]}: looks for {name}, whose licence is not in THIRD_PARTY.md"
    for name in sorted(listed - set(found)):
        yield f"THIRD_PARTY.md: has {name}, which no CMakeLists.txt looks for"


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    lines = list(wrong(root))
    for line in lines:
        print(line)
    print(f"third parties: {len(lines)} wrong")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
