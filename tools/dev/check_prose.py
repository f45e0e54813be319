#!/usr/bin/env python3
"""Checks the documents: length of pages and sentences, the index, dead links and anchors, and the subjects of commits.

check_prose.py [--list] [ROOT]: reads the repository at ROOT (default: this one), prints a line for every fault and ends with 1 if
there was one. --list prints words, sentences and mean sentence of each page instead of checking them.

The rules for pages (PAGES):
- A page has WORDS_LEAST to WORDS_MOST words, code blocks not counted.
- Its mean sentence has SENTENCE_MEAN words at most, and each one SENTENCE_MOST. Code blocks, tables, headings and the targets of
  links are no sentences; list items are. `code` counts as one word.
- "what" stands once in WHAT_WORDS words at most, questions not counted: a page with fewer words has none.
- INDEX links to it, or the page in PARENTS does, to which INDEX links.

In all documents, links to files of the repository lead to one, and those with an #anchor to a heading, as GitHub names it.

The subject of each commit after SINCE has SUBJECT_MOST characters at most. Where SINCE is unknown, as in a shallow clone, all
commits that are there count.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import urllib.parse

PAGES = ("docs/guide", "docs/developer", "docs/reference")
INDEX = "docs/README.md"
# Pages that another page lists in place of the index.
PARENTS = {"docs/reference/ops-": "docs/reference/ops.md"}
WORDS_LEAST, WORDS_MOST = 80, 1200
SENTENCE_MEAN, SENTENCE_MOST = 18, 40
WHAT_WORDS = 400
SINCE = "4767bf120c8b5b4a751f11c2b0cfc95fb6b3f569"
SUBJECT_MOST = 72

FENCE = re.compile(r"^\s*(```+|~~~+)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)")
DEFINITION = re.compile(r"^\s{0,3}\[([^\]]+)\]:\s*<?(\S+?)>?(?:\s+\"[^\"]*\")?\s*$")
HTML_LINK = re.compile(r"\b(?:href|src)=[\"']([^\"']+)[\"']")
HTML_ANCHOR = re.compile(r"<[a-z]+[^>]*\b(?:id|name)=[\"']([^\"']+)[\"']")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]*]*\s+(?=[\"'(\[*]*(?:[A-Z0-9`]|clnet))")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|vs|etc|approx|Fig|No)\.$")
WORD = re.compile(r"[^\W_]")
WHAT = re.compile(r"\bwhat\b", re.IGNORECASE)


def lines_of(text):
    """Lines of a document with their numbers from 1; those in code blocks and comments are empty."""
    text = COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = FENCE.match(line)
        if fence:
            # The end is as long at least, and nothing stands behind it.
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
            yield number, ""
        elif mark:
            fence = mark[1]
            yield number, ""
        else:
            yield number, line


def plain(text):
    """Text as a reader sees it: of links their text, and `code` as one word."""
    text = CODE.sub("Code", text)
    text = LINK.sub(lambda match: match[1], text)
    return re.sub(r"<[^<>]+>|[*_]{1,3}(?=\w)|(?<=\w)[*_]{1,3}(?!\w)", "", text)


def count(text):
    return sum(1 for word in text.split() if WORD.search(word))


def blocks(text):
    """Paragraphs and list items as (line, text): what has sentences."""
    start, parts = 0, []
    for number, line in lines_of(text):
        item = ITEM.match(line)
        ends = not line.strip() or HEADING.match(line) or line.lstrip().startswith("|") or DEFINITION.match(line) or item
        if ends and parts:
            yield start, " ".join(parts)
            parts = []
        if not ends or item:
            if not parts:
                start = number
            parts.append(line[item.end():] if item else line.strip().lstrip(">").strip())
    if parts:
        yield start, " ".join(parts)


def sentences(text):
    """(line on which its paragraph begins, sentence) of a document, code as one word."""
    for number, block in blocks(text):
        begun = ""
        for part in SENTENCE_END.split(plain(block)):
            begun = f"{begun} {part}".strip()
            if not ABBREVIATION.search(begun):
                if count(begun):
                    yield number, begun
                begun = ""
        if count(begun):
            yield number, begun


def words(text):
    """Words of a document outside of its code blocks: headings and tables count, too."""
    return sum(count(plain(re.sub(r"^\s*#+|\|", " ", line))) for _, line in lines_of(text) if not DEFINITION.match(line))


def mean(text):
    lengths = [count(sentence) for _, sentence in sentences(text)]
    return sum(lengths) / len(lengths) if lengths else 0.0


def page_problems(path, text):
    """What is wrong with one page."""
    total = words(text)
    if not WORDS_LEAST <= total <= WORDS_MOST:
        yield f"{path}: {total} words, not {WORDS_LEAST} to {WORDS_MOST}"
    if mean(text) > SENTENCE_MEAN:
        yield f"{path}: a mean sentence of {mean(text):.1f} words, more than {SENTENCE_MEAN}"
    relative = []
    for number, sentence in sentences(text):
        length = count(sentence)
        if length > SENTENCE_MOST:
            yield f"{path}:{number}: a sentence of {length} words, more than {SENTENCE_MOST}: {sentence[:60]}..."
        if not sentence.rstrip("\"')]*").endswith("?"):
            relative += [number] * len(WHAT.findall(sentence))
    allowed = total // WHAT_WORDS
    if len(relative) > allowed:
        where = ", ".join(str(number) for number in relative)
        yield f'{path}: "what" {len(relative)} times in {total} words, more than {allowed}; in the paragraphs of lines {where}'


def anchors(text):
    """The anchors of a document, as GitHub makes them of headings."""
    found, taken = set(HTML_ANCHOR.findall(text)), {}
    for _, line in lines_of(text):
        heading = HEADING.match(line)
        if not heading:
            continue
        shown = LINK.sub(lambda match: match[1], CODE.sub(lambda match: match[2].strip(), heading[1]))
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).strip().replace(" ", "-")
        number = taken.get(slug, 0)
        taken[slug] = number + 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


def targets(text):
    """(line, target) of every link."""
    kept = [(number, line) for number, line in lines_of(text)]
    for number, line in kept:
        definition = DEFINITION.match(line)
        if definition:
            yield number, definition[2]
    # A link's text may go over lines.
    whole = "\n".join("" if DEFINITION.match(line) else line for _, line in kept)
    whole = CODE.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), whole)
    for pattern, group in ((LINK, 2), (HTML_LINK, 1)):
        for match in pattern.finditer(whole):
            yield whole.count("\n", 0, match.start()) + 1, match[group]


def links(root, path, text):
    """(line, target, file, anchor) of every link of one document that is to a file."""
    here = (root / path).parent
    for number, target in targets(text):
        if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//", target):
            continue
        name, _, anchor = target.partition("#")
        name = urllib.parse.unquote(name.partition("?")[0])
        file = root / path if not name else root / name.lstrip("/") if name.startswith("/") else here / name
        yield number, target, file.resolve(), anchor


def index_problems(root, pages, texts):
    """Pages that neither the index nor the page that lists their kind links to."""
    linked = {path: {file for _, _, file, _ in links(root, path, texts[path])} for path in (INDEX, *PARENTS.values()) if path in texts}
    for page in pages:
        source = next((parent for start, parent in PARENTS.items() if page.startswith(start)), INDEX)
        if (root / page).resolve() not in linked.get(source, set()) | linked.get(INDEX, set()):
            yield f"{page}: {source} has no link to it"


def link_problems(root, path, text, read):
    """Where links of one document lead nowhere. `read` gives the text of another."""
    for number, target, file, anchor in links(root, path, text):
        if not file.is_relative_to(root.resolve()):
            yield f"{path}:{number}: {target}: leads out of the repository"
        elif not file.exists():
            yield f"{path}:{number}: {target}: there is no such file"
        elif anchor and file.suffix == ".md" and urllib.parse.unquote(anchor) not in anchors(read(file)):
            yield f"{path}:{number}: {target}: there is no such heading"


def git(root, *arguments):
    """What git prints; None where it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def documents(root):
    """Paths of all documents from the root: those that git knows or would add, else all."""
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md")
    if listed is None:
        return sorted(file.relative_to(root).as_posix() for file in root.rglob("*.md"))
    return sorted({name for name in listed.split("\0") if name and (root / name).is_file()})


def subjects(root, since=SINCE):
    """(hash, subject) of the commits after `since`, or of all that are there; None where there is no history."""
    known = git(root, "cat-file", "-e", since + "^{commit}") is not None
    log = git(root, "log", "--format=%h%x09%s", f"{since}..HEAD" if known else "HEAD")
    if log is None:
        return None
    return [tuple(line.split("\t", 1)) for line in log.splitlines()]


def subject_problems(commits):
    for commit, subject in commits:
        if len(subject) > SUBJECT_MOST:
            yield f"commit {commit}: a subject of {len(subject)} characters, more than {SUBJECT_MOST}: {subject[:60]}..."


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--list", action="store_true", help="print words, sentences and mean sentence of each page")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    options = parser.parse_args()
    root = options.root
    texts = {path: (root / path).read_text(encoding="utf-8") for path in documents(root)}
    pages = [path for path in texts if path.startswith(tuple(folder + "/" for folder in PAGES))]
    if not pages:
        sys.exit(f"{root}: no pages in {' or '.join(PAGES)}")
    if options.list:
        for path in pages:
            found = list(sentences(texts[path]))
            longest = max((count(sentence) for _, sentence in found), default=0)
            print(f"{path:44} {words(texts[path]):5} words {len(found):4} sentences, mean {mean(texts[path]):4.1f}, longest {longest}")
        return

    def read(file):
        path = file.relative_to(root.resolve()).as_posix()
        if path not in texts:
            texts[path] = file.read_text(encoding="utf-8")
        return texts[path]

    checked = list(texts.items())
    wrong = [line for path in pages for line in page_problems(path, texts[path])]
    wrong += index_problems(root, pages, texts)
    wrong += [line for path, text in checked for line in link_problems(root, path, text, read)]
    commits = subjects(root)
    wrong += subject_problems(commits or [])
    for line in wrong:
        print(line)
    history = "no history" if commits is None else f"{len(commits)} commits"
    print(f"prose: {len(pages)} pages, {len(checked)} documents, {history}, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
