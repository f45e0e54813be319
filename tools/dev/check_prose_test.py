#!/usr/bin/env python3
"""Checks that check_prose.py sees what it is there to see."""

import pathlib
import subprocess
import tempfile
import unittest

from check_prose import (SENTENCE_MOST, SUBJECT_MOST, WHAT_WORDS, WORDS_LEAST, WORDS_MOST, anchors, count, documents, git, index_problems,
                         link_problems, mean, page_problems, plain, sentences, subject_problems, subjects, targets, words)

# Nine words.
SENTENCE = "A tensor is a handle to one lazy value. "
PAGE = "# Tensors\n\n" + SENTENCE * 12 + "\n"


class Prose(unittest.TestCase):
    def expect(self, text, *wanted, path="docs/guide/page.md"):
        found = list(page_problems(path, text))
        self.assertEqual(len(found), len(wanted), found)
        for line, part in zip(found, wanted):
            self.assertIn(part, line)

    def split(self, text):
        return [sentence for _, sentence in sentences(text)]

    def test_a_good_page(self):
        self.expect(PAGE)

    def test_words_of_a_page(self):
        self.expect("# Tensors\n\n" + SENTENCE, f"not {WORDS_LEAST} to {WORDS_MOST}")
        self.expect(SENTENCE * (WORDS_MOST // 9 + 1), f"not {WORDS_LEAST} to {WORDS_MOST}")
        self.expect(PAGE + "\n```cpp\n" + SENTENCE * 500 + "\n```\n")
        self.assertEqual(words("# One two\n\n| three | `four five` |\n|---|---|\n\n- six\n\n```\nseven\n```\n"), 5)

    def test_a_long_sentence(self):
        long = "It is " + "very " * (SENTENCE_MOST - 3) + "long."
        self.expect(PAGE + "\n" + long)
        self.expect(PAGE + "\n- An item.\n- " + long.replace("is", "is very") + "\n", "docs/guide/page.md:6: a sentence of 41 words")

    def test_the_mean_sentence(self):
        self.expect(("Word " + "word " * 18 + "end. ") * 8, "a mean sentence of")
        self.assertAlmostEqual(mean("One two three. Four.\n"), 2.0)

    def test_sentences(self):
        self.assertEqual(self.split("One two. Three (four!) five? `Six` seven."), ["One two.", "Three (four!) five?", "Code seven."])
        self.assertEqual(self.split("Version 1.5 of it, e.g. This one, has 3.2 GiB. Next."), ["Version 1.5 of it, e.g. This one, has 3.2 GiB.", "Next."])
        self.assertEqual(self.split("One ends. clnet begins another. a does not."), ["One ends.", "clnet begins another. a does not."])
        self.assertEqual(self.split("One\ntwo\n\n- three\n  four\n- five\n1. six\n"), ["One two", "three four", "five", "six"])
        self.assertEqual(self.split("**Bold.** Then [a link. Of two](x.md#y). End."), ["Bold.", "Then a link.", "Of two.", "End."])

    def test_no_sentences(self):
        self.assertEqual(self.split("# What is a heading?\n\n| what | a table |\n|---|---|\n\n```sh\nwhat is code\n```\n"), [])
        self.assertEqual(self.split("````md\n```\nno\n```\n````\n<!-- a\ncomment -->\n[x]: y.md\n"), [])

    def test_code_is_a_word(self):
        self.assertEqual(count(plain("Call `eval({x, y})`, ``a `b` c`` and [`f(x)` here](a_b.md).")), 6)

    def test_what(self):
        self.expect(PAGE + "\nIt reads what it needs.\n", '"what" 1 times')
        long = "# T\n\n" + SENTENCE * (WHAT_WORDS // 9 + 1)
        self.expect(long + "\nIt reads what it needs.\n")
        self.expect(long + "\nIt reads what it needs. What it needs is small.\n", '"what" 2 times')
        self.expect(PAGE + "\nWhat is a tensor? What is `what`? See [that](#what).\n")
        self.expect(long + "\nSee [what](#what). See [what](#what).\n", '"what" 2 times')
        self.expect("# T\n\n" + SENTENCE * 100 + "\nIt reads what it needs. What it needs is small.\n")

    def test_anchors(self):
        text = "# One: `two_three`, (four)!\n## Same\n## Same\n### A [link](x.md) - dash\n<a id=\"own\"></a>\n```\n# code\n```\n"
        self.assertEqual(anchors(text), {"one-two_three-four", "same", "same-1", "a-link---dash", "own"})

    def test_targets(self):
        text = "[a](b.md) ![c](d.svg \"title\") [`e` [f]](<g.md>)\n`[no](no.md)` [over\nlines](h.md)\n[i]: j.md\n<img src=\"k.svg\">\n"
        self.assertEqual(sorted(target for _, target in targets(text)), ["b.md", "d.svg", "g.md", "h.md", "j.md", "k.svg"])
        self.assertIn((4, "j.md"), list(targets(text)))


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs").mkdir()
        (self.root / "docs/other.md").write_text("# Other\n\n## A heading\n")
        (self.root / "README.md").write_text("# Top\n")

    def expect(self, text, *wanted):
        found = list(link_problems(self.root, "docs/page.md", text, lambda file: file.read_text()))
        self.assertEqual(len(found), len(wanted), found)
        for line, part in zip(found, wanted):
            self.assertIn(part, line)

    def test_links(self):
        (self.root / "docs/page.md").write_text("# Here\n")
        self.expect("[a](other.md) [b](other.md#a-heading) [c](../README.md#top) [d](#here) [e](/docs/other.md) [f](../docs)\n")
        self.expect("[a](https://example.org/none) [b](mailto:a@example.org)\n")
        self.expect("one\n[a](none.md)\n", "docs/page.md:2: none.md: there is no such file")
        self.expect("[a](other.md#none) [b](#none)\n", "other.md#none: there is no such heading", "#none: there is no such heading")
        self.expect("[a](../../none.md)\n", "leads out of the repository")
        self.expect("```\n[a](none.md)\n```\n`[b](none.md)`\n")

    def test_the_index(self):
        pages = ["docs/guide/a.md", "docs/developer/b.md", "docs/reference/ops.md", "docs/reference/ops-conv.md"]
        texts = {"docs/README.md": "[a](guide/a.md#anchor) [b](developer/b.md)\n[ops](reference/ops.md)\n", "docs/guide/a.md": "[c](../guide/c.md)\n",
                 "docs/reference/ops.md": "[conv](ops-conv.md)\n"}
        self.assertEqual(list(index_problems(self.root, pages, texts)), [])
        self.assertEqual(list(index_problems(self.root, ["docs/guide/c.md"], texts)), ["docs/guide/c.md: docs/README.md has no link to it"])
        self.assertEqual(list(index_problems(self.root, ["docs/reference/ops-norm.md"], texts)),
                         ["docs/reference/ops-norm.md: docs/reference/ops.md has no link to it"])
        texts["docs/README.md"] += "[norm](reference/ops-norm.md)\n"
        self.assertEqual(list(index_problems(self.root, ["docs/reference/ops-norm.md"], texts)), [])
        self.assertEqual(len(list(index_problems(self.root, pages, {}))), 4)

    def commit(self, subject):
        self.assertIsNotNone(git(self.root, "-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-q", "--allow-empty", "-m", subject))
        return git(self.root, "rev-parse", "HEAD").strip()

    def test_commits(self):
        self.assertIsNone(subjects(self.root))
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.commit("old " + "x" * SUBJECT_MOST)
        since = self.commit("the one that is recorded " + "x" * SUBJECT_MOST)
        self.assertEqual(subjects(self.root, since), [])
        self.commit("Good\n\nA body " + "x" * SUBJECT_MOST)
        self.commit("y" * SUBJECT_MOST)
        self.assertEqual([subject for _, subject in subjects(self.root, since)], ["y" * SUBJECT_MOST, "Good"])
        self.assertEqual(list(subject_problems(subjects(self.root, since))), [])
        self.commit("z" * (SUBJECT_MOST + 1))
        self.assertIn(f"a subject of {SUBJECT_MOST + 1} characters", next(subject_problems(subjects(self.root, since))))
        # As in a clone that is not deep enough.
        self.assertEqual(len(subjects(self.root, "0" * 40)), 5)

    def test_documents(self):
        self.assertEqual(documents(self.root), ["README.md", "docs/other.md"])
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        (self.root / ".gitignore").write_text("build\n")
        (self.root / "build").mkdir()
        (self.root / "build/x.md").write_text("[a](none.md)\n")
        self.assertEqual(documents(self.root), ["README.md", "docs/other.md"])


if __name__ == "__main__":
    unittest.main()
