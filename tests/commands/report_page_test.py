import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from elmo_tasks.commands.report_config import Setting
from elmo_tasks.commands.report_page import ConfigTable, RunReport, render
from elmo_tasks.commands.report_predictions import Prediction, Predictions
from elmo_tasks.commands.report_runs import TrainedRun

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
NO_CONFIG = ConfigTable(None, ["run"], [])


class Page(HTMLParser):
    """The elements of a page, and what stands in its table cells and paragraphs."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.words = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, words):
        if self.tags and self.tags[-1][0] not in ("script", "style"):
            self.words += words.split()

    @property
    def text(self):
        return " ".join(self.words)


def run(name="run", epochs=None, **changes):
    if epochs is None:
        epochs = {
            number: {
                "training_loss": 0.7 - number / 10,
                "validation_loss": 0.8 - number / 10,
                "training_accuracy": 0.5,
                "validation_accuracy": 0.25 * number,
                "training_scalar_mix_layer_0_weight": 0.0,
                "training_scalar_mix_layer_1_weight": 1.0,
                "training_scalar_mix_gamma": 0.5,
            }
            for number in range(3)
        }
    made = TrainedRun(
        path=f"runs/{name}",
        name=name,
        config={"trainer": {"validation_metric": "+accuracy"}},
        epochs=epochs,
        metrics={"best_epoch": 2, "best_validation_accuracy": 0.5, "test_accuracy": 0.75, "test_loss": 0.625},
        archive=None,
    )
    return made._replace(**changes)


def predictions(*rows):
    """Of (text, true, predicted, confidence), all errors explained."""
    made = [
        Prediction(f"test.txt:{number}", [text.split()], true, predicted, confidence, [])
        for number, (text, true, predicted, confidence) in enumerate(rows, start=1)
    ]
    errors = [
        row._replace(saliency=[[(-1.0) ** place / (place + 1) for place in range(len(row.texts[0]))]])
        for row in made
        if row.true != row.predicted
    ]
    labels = sorted({label for row in made for label in (row.true, row.predicted)})
    return Predictions("data/test.txt", labels, made, errors)


def page_of(*reports, config=NO_CONFIG):
    return render(list(reports), config, "Made by a test.")


def test_figures_of_a_run_are_on_its_page():
    text = Page(page_of(RunReport(run(), "None."))).text
    assert "run epochs best epoch best validation accuracy test accuracy test loss" in text
    assert "run 3 2 0.5000 0.7500 0.6250" in text
    assert text.endswith("Made by a test.")


def test_confusion_matrix_calibration_and_errors_are_on_the_page():
    rows = [
        ("a b", "no", "no", 0.75),
        ("c d", "no", "yes", 0.875),
        ("e f", "yes", "yes", 1.0),
        ("g h", "yes", "yes", 0.5),
    ]
    text = Page(page_of(RunReport(run(), predictions(*rows)))).text
    assert "On the 4 rows of data/test.txt : accuracy 75.0 %, mean confidence 78.1 %" in text
    # |1 - 0.75|, |0 - 0.875|, |1 - 1| and |1 - 0.5|, each with one row
    assert "expected calibration error 40.6 %" in text
    assert "predicted true no yes no 1 50.0 % 1 50.0 % yes 0 0.0 % 2 100.0 %" in text
    assert "The 1 of 1 errors" in text
    assert "87.5 % yes no c d test.txt:2" in text


def test_words_are_coloured_for_and_against_the_prediction():
    tags = Page(page_of(RunReport(run(), predictions(("one two three", "no", "yes", 0.9))))).tags
    words = [attributes for tag, attributes in tags if attributes.get("title")]
    assert [(word["class"], word["style"]) for word in words] == [
        ("word for", "--share: 1.0"),
        ("word against", "--share: 0.5"),
        ("word for", "--share: 0.33"),
    ]


def test_sections_without_content_say_why():
    text = Page(page_of(RunReport(run(epochs={}, metrics={}), "The run has no archive yet."))).text
    assert "No epoch has left its figures." in text
    assert "No run reports the weights of a layer mix." in text
    assert "The run has no archive yet." in text
    assert "The run tells nothing about them." in text


def test_a_run_without_errors_says_so():
    text = Page(page_of(RunReport(run(), predictions(("a", "no", "no", 0.9), ("b", "yes", "yes", 0.9))))).text
    assert "Errors made with most confidence There are none." in text


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (ConfigTable(None, ["run"], [Setting("a.b", None, ["1"])]), "Every setting; there was no config to compare"),
        (ConfigTable("mr.jsonnet", ["run"], [Setting("a.b", "0", ["1"])]), "What differs from mr.jsonnet;"),
        (ConfigTable("mr.jsonnet", ["run"], []), "Every setting is that of mr.jsonnet."),
    ],
)
def test_page_says_what_the_config_is_compared_with(config, sentence):
    text = Page(page_of(RunReport(run(), "None."), config=config)).text
    assert sentence in text
    assert ("a.b" in text) == bool(config.settings)


def test_setting_that_is_not_set_says_so():
    config = ConfigTable("one", ["two"], [Setting("seed", None, ["1"])])
    assert "seed not set 1" in Page(page_of(RunReport(run(), "None."), config=config)).text


def test_several_runs_stand_side_by_side():
    reports = [RunReport(run("one"), "No."), RunReport(run("two"), predictions(("a", "no", "yes", 0.9)))]
    page = Page(page_of(*reports))
    assert "Predictions of one No." in page.text
    assert "Predictions of two On the 1 rows" in page.text
    assert {"series-0", "series-1", "series-0 faint", "series-1 faint"} <= {
        attributes.get("class") for tag, attributes in page.tags if tag == "li"
    }
    titles = [attributes["aria-label"] for tag, attributes in page.tags if tag == "svg"]
    assert titles == [
        "loss over the epochs",
        "accuracy over the epochs",
        "layer weights, one",
        "layer weights, two",
        "gamma over the epochs",
        "accuracy in each bin of confidence",
    ]


def test_weight_of_zero_in_every_epoch_is_a_line():
    legend = re.findall(r"swatch\"></span>(layer \d)", page_of(RunReport(run(), "None.")))
    assert legend == ["layer 0", "layer 1"]


def test_more_runs_than_colours_differ_by_dashes():
    page = Page(page_of(*(RunReport(run(f"run{number}"), "No.") for number in range(8))))
    classes = [attributes.get("class") for tag, attributes in page.tags if tag == "li"]
    assert "series-0 dashed" in classes


def test_a_perplexity_has_its_curve():
    epochs = {0: {"training_loss": 5.0, "validation_perplexity": 90.0, "training_perplexity": 99.0}}
    config = {"trainer": {"validation_metric": "-perplexity"}}
    tags = Page(page_of(RunReport(run(epochs=epochs, config=config), "None."))).tags
    titles = [attributes["aria-label"] for tag, attributes in tags if tag == "svg"]
    assert titles == ["loss over the epochs", "perplexity over the epochs"]


def evil_page():
    rows = [(f"{EVIL} word", EVIL, "no", 0.9), (EVIL, "no", "no", 0.8)]
    config = ConfigTable(EVIL, [EVIL], [Setting(EVIL, f'"{EVIL}"', [EVIL])])
    evil_run = run(EVIL, path=EVIL)
    made = predictions(*rows)._replace(data=EVIL)
    one = RunReport(evil_run, made._replace(errors=[error._replace(place=EVIL) for error in made.errors]))
    return render([one, RunReport(run("two"), EVIL)], config, EVIL)


def test_texts_labels_paths_and_configs_are_escaped():
    page = Page(evil_page())
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "img" not in [tag for tag, _ in page.tags]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert page.text.count("alert(1)") >= 10


def test_browser_is_told_to_run_the_one_script_and_to_load_nothing():
    text = evil_page()
    (policy,) = re.findall(r'Content-Security-Policy"\s+content="([^"]+)"', text)
    script = re.search(r"<script>(\"use strict\".*?)</script>", text, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_page_names_nothing_outside_itself():
    page = Page(page_of(RunReport(run(), predictions(("a", "no", "yes", 0.9)))))
    addresses = [
        value
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "data", "action")
    ]
    assert addresses == ["#config", "#curves", "#mix", "#predictions-1", "#machine"]
    anchors = {attributes.get("id") for _, attributes in page.tags}
    assert {address[1:] for address in addresses} <= anchors
