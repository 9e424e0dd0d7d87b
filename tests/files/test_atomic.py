"""Files appear complete or not at all, and temporary files of killed commands are removed."""

import pytest

from netbic.files import WriteError, atomic, scratch_folder, write_atomic


def test_temporary_files_of_a_killed_write_are_removed_by_the_next_write(tmp_path):
    for name in (
        ".netbic-unfinished-table.tsv-77-abcd1234",
        ".netbic-unfinished-other.tsv-77-abcd1234",
        ".netbic-unfinished-table.tsv-notes",
    ):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / ".netbic-unfinished-table.tsv-77-zzzz9999").symlink_to(tmp_path / "nowhere")
    write_atomic(tmp_path / "table.tsv", b"whole")
    left = {path.name for path in tmp_path.iterdir()}
    assert ".netbic-unfinished-table.tsv-77-abcd1234" not in left
    assert {"table.tsv", ".netbic-unfinished-other.tsv-77-abcd1234", ".netbic-unfinished-table.tsv-notes"} <= left
    assert ".netbic-unfinished-table.tsv-77-zzzz9999" in left  # links are not netbic's


def test_a_write_error_names_the_file_and_what_to_do(tmp_path):
    with pytest.raises(WriteError, match=r"table.tsv cannot be written \(.*\): check the folder and its permissions"):
        write_atomic(tmp_path / "nowhere" / "table.tsv", b"x")


def test_long_names_with_the_same_start_have_separate_temporary_files(tmp_path):
    one, other = "x" * 90 + "-1.zarr", "x" * 90 + "-2.zarr"
    with scratch_folder(tmp_path, one) as mine, scratch_folder(tmp_path, other) as theirs:
        assert mine.name[:100] != theirs.name[:100] or mine.name.split("-")[-3] != theirs.name.split("-")[-3]
        assert atomic.temporary_files(tmp_path, one) != atomic.temporary_files(tmp_path, other)
        assert len(atomic.temporary_files(tmp_path, one)) == 1
    with scratch_folder(tmp_path, "\N{CJK UNIFIED IDEOGRAPH-57FA}" * 76 + ".zarr") as scratch:
        assert scratch.is_dir()
    assert not list(tmp_path.iterdir())
