import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.output_paths import check_output_file, check_output_folder


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").touch()


@pytest.mark.parametrize("path", ["new.txt", "file.txt", "folder/new.txt"])
def test_a_file_may_be_new_or_not(path):
    check_output_file(path)


@pytest.mark.parametrize("option", [None, "--picture"])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("folder", "must be a file, but folder is a folder"),
        ("no/new.txt", "must be in a folder that can be written to, but no is none"),
        ("file.txt/new.txt", r"must be in a folder that can be written to, but file\.txt is none"),
    ],
)
def test_a_place_where_no_file_can_be_is_named(path, message, option):
    with pytest.raises(ConfigurationError, match=f"^{path if option is None else '`--picture`'} {message}"):
        check_output_file(path, option)


@pytest.mark.parametrize("path", ["new", "folder", "new/new", "folder/new/"])
def test_a_folder_may_be_new_or_not(path):
    check_output_folder(path)


@pytest.mark.parametrize("path", ["file.txt", "file.txt/new", "file.txt/new/new"])
def test_a_file_in_place_of_a_folder_is_named(path):
    with pytest.raises(ConfigurationError, match=rf"^{path} must be a folder, new or not, but file\.txt is a file"):
        check_output_folder(path)
