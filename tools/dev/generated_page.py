"""Pages that a script writes, and --check compares."""


def write_or_compare(root, path, text, check, writer):
    """Writes the page, or with `check` gives the lines about its difference: one or none."""
    target = root / path
    if not check:
        target.write_text(text, encoding="utf-8")
    elif not target.exists() or target.read_text(encoding="utf-8") != text:
        return [f"{path} differs: {writer} writes it"]
    return []
