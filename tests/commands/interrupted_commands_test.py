"""Commands of which the same command goes on."""

import importlib

import pytest


@pytest.mark.parametrize(
    ("module", "function", "arguments"),
    [
        ("compare", "compare_variants", ["compare", "config", "variants", "-s", "folder"]),
        ("cross_validate", "cross_validate", ["cross-validate", "config", "-s", "folder"]),
        ("elmo", "embed_file", ["elmo", "text.txt", "vectors.npz", "--pretrained", "mini"]),
        ("predict_bulk", "predict_bulk", ["predict-bulk", "archive", "rows", "-s", "folder"]),
        ("sweep", "sweep", ["sweep", "config", "space", "-s", "folder"]),
    ],
)
def test_ctrl_c_is_told_in_a_line(module, function, arguments, allennlp, tmp_path, monkeypatch, capsys):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a film\n")
    monkeypatch.setattr(importlib.import_module(f"elmo_tasks.commands.{module}"), function, interrupt)
    with pytest.raises(SystemExit) as ended:
        allennlp(*arguments)
    assert ended.value.code == 130
    assert "The same command goes on" in capsys.readouterr().err
