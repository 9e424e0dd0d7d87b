"""Text that is kept in the user's cache folder."""

import pytest

from netbic.files import cached_text


@pytest.fixture
def made(monkeypatch, tmp_path):
    """What was made so far; the cache folder is `tmp_path / "cache"`."""
    monkeypatch.setenv("NETBIC_CACHE", str(tmp_path / "cache"))
    return []


def maker(made, text):
    return lambda: made.append(text) or text


def test_text_is_made_once_for_each_name(made, tmp_path):
    assert cached_text("a-1.js", maker(made, "eins")) == "eins"
    assert cached_text("a-1.js", maker(made, "other")) == "eins"
    assert cached_text("a-2.js", maker(made, "zwei: ü")) == "zwei: ü"
    assert made == ["eins", "zwei: ü"]
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["a-1.js", "a-2.js"]


def test_an_empty_or_damaged_file_is_replaced(made, tmp_path):
    (tmp_path / "cache").mkdir()
    for content in (b"", b"\xff\xfe\xff"):
        (tmp_path / "cache" / "a.js").write_bytes(content)
        assert cached_text("a.js", maker(made, "text")) == "text"
        assert (tmp_path / "cache" / "a.js").read_text() == "text"


def test_without_a_folder_the_text_is_made_every_time(made, tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    for _ in range(2):
        assert cached_text("a.js", maker(made, "text")) == "text"
    assert made == ["text", "text"]
