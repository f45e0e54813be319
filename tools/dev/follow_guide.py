#!/usr/bin/env python3
"""Follows docs/developer/adding-an-op.md to the letter: applies its snippets to a copy of the tree, builds it and runs its commands.

  tools/dev/follow_guide.py [--folder FOLDER]   the copy goes into a new folder, and stays there; without one it is a temporary one

A snippet belongs to the line above it: "In `FILE`, before `TEXT`:" or "A new file, `FILE`:". Ends with 0 when all tests pass.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/developer/adding-an-op.md"


def snippets(text):
    """(file, text before which it goes or None, code) for each block that changes a file, and the blocks of sh."""
    changes, commands = [], []
    place, code, kind = None, None, None
    for line in text.splitlines():
        if code is not None:
            if line == "```":
                if kind == "sh":
                    commands.append("\n".join(code))
                elif place:
                    changes.append((*place, "\n".join(code) + "\n"))
                else:
                    raise SystemExit(f"{GUIDE.name}: no line says where this goes: {code[0]}")
                place, code = None, None
            else:
                code.append(line)
            continue
        if line.startswith("```"):
            code, kind = [], line[3:]
        elif inserted := re.fullmatch(r"In `([^`]+)`, before `([^`]+)`:", line):
            place = inserted.groups()
        elif created := re.fullmatch(r"A new file, `([^`]+)`:", line):
            place = (created[1], None)
    return changes, commands


def apply(tree, changes):
    for name, before, code in changes:
        path = tree / name
        if before is None:
            if path.exists():
                raise SystemExit(f"{name} is there already")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
            continue
        text = path.read_text()
        places = [match.start() for match in re.finditer("(?m)^" + re.escape(before), text)]
        if len(places) != 1:
            raise SystemExit(f"{name}: {len(places)} lines begin with {before!r}")
        path.write_text(text[:places[0]] + code + text[places[0]:])


def copy_tree(target):
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    changes, commands = snippets(GUIDE.read_text())
    if len(changes) < 9 or len(commands) != 1:
        raise SystemExit(f"{GUIDE.name}: {len(changes)} snippets and {len(commands)} blocks of commands")
    if options.folder and options.folder.exists():
        raise SystemExit(f"{options.folder} is there already")
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="clnet-guide-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        copy_tree(folder)
        apply(folder, changes)
        print(f"{len(changes)} snippets applied", flush=True)
        # Neither the library nor the kernels run for long: optimising them would take longer.
        subprocess.run(["cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0"],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["sh", "-e", "-x", "-c", commands[0]], cwd=folder, check=True, env=os.environ | {"CLNET_TEST_PLAIN": "1"})
    except subprocess.CalledProcessError as error:
        print(f"{GUIDE.name}: {error}", file=sys.stderr)
        return 1
    finally:
        if not options.folder:
            shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
